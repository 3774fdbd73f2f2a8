export interface RedisSettings {
  /**
   * `redis://host:port` or `rediss://host:port` (TLS), without credentials. In cluster mode some of
   * the nodes, otherwise one.
   */
  readonly urls: readonly string[];
  readonly username?: string;
  readonly password?: string;
  /** PEM. If absent, Node's trusted CAs. */
  readonly ca?: string;
  readonly cluster: boolean;
  /** Several installations can share one Redis. */
  readonly prefix: string;
}
