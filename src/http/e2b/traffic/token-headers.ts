/** Lower-case names of headers that hold a secret of this API or name a sandbox. */
export const TOKEN_HEADERS: ReadonlySet<string> = new Set([
  'x-access-token',
  'e2b-traffic-access-token',
  'x-api-key',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
]);
