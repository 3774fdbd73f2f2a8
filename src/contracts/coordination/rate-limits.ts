export interface RateLimits {
  /**
   * Counts one call; false if the name exceeds `limit` in the window, which begins with its first
   * call. Never rejects: if the store is unreachable, this replica counts by itself.
   */
  countWithin(
    name: string,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly within: boolean; readonly retryAfterMs: number }>;
}
