/** Lists what may stand before a path: the API is the same under each. */
export const BASES = ['', '/v1'] as const;
