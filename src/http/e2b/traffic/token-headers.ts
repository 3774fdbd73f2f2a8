/** They hold a secret or name a sandbox; in lower case. */
export const TOKEN_HEADERS: ReadonlySet<string> = new Set([
  'x-access-token',
  'e2b-traffic-access-token',
  'x-api-key',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
]);
