export interface RateLimits {
  /**
   * Counts one; false where the name has more than `limit` in the window, which begins with its
   * first. Never rejects: where the count is out of reach, it is this replica's own.
   */
  countWithin(
    name: string,
    limit: number,
    windowMs: number,
  ): Promise<{ readonly within: boolean; readonly retryAfterMs: number }>;
}
