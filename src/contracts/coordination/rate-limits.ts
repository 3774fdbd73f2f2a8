export interface RateLimits {
  /**
   * The window begins with the name's first call. Never rejects: if the store is unreachable, this
   * replica counts by itself.
   */
  countWithin(
    name: string,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly within: boolean; readonly retryAfterMs: number }>;
}
