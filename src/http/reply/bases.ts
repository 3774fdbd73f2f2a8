/** Lists what may stand before a path: the API is the same under each. */
export const BASES = ['', '/v1'] as const;

/** `/v1` where the client asked there, else nothing. */
export const askedBase = (path: string): string =>
  BASES.find((base) => base !== '' && path.startsWith(`${base}/`)) ?? '';

export const withoutBase = (path: string): string => path.slice(askedBase(path).length);
