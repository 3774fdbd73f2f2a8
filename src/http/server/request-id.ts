import { randomUUID } from 'node:crypto';

const FIT = /^[A-Za-z0-9._-]{1,128}$/;

/** The client's own `X-Request-Id` where it is fit to be logged, else a new one. */
export const requestIdFrom = (header: string | string[] | undefined): string =>
  typeof header === 'string' && FIT.test(header) ? header : randomUUID();
