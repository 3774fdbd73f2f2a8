/** Connection settings of Redis. */
export interface RedisSettings {
  /**
   * `redis://host:port` or `rediss://host:port` (TLS), without credentials. In cluster mode some of
   * the nodes, otherwise one.
   */
  readonly urls: readonly string[];
  readonly username?: string;
  readonly password?: string;
  /** PEM of the CA of the server's certificate. If absent, Node's trusted CAs. */
  readonly ca?: string;
  readonly cluster: boolean;
  /** Prefix of every key, so that several installations can share one Redis. */
  readonly prefix: string;
}
