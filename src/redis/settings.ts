/** The settings by which Redis is reached. */
export interface RedisSettings {
  /**
   * `redis://host:port` or `rediss://host:port` (TLS), without credentials; in cluster mode of some
   * of its nodes, else one.
   */
  readonly urls: readonly string[];
  readonly username?: string;
  readonly password?: string;
  /** PEM: who must have signed the server's certificate. Absent: whom Node trusts. */
  readonly ca?: string;
  readonly cluster: boolean;
  /** With which every key begins, so that several can share one Redis. */
  readonly prefix: string;
}
