/** Headers with a secret of this API or a sandbox's name, in lower case. */
export const TOKEN_HEADERS: ReadonlySet<string> = new Set([
  'x-access-token',
  'e2b-traffic-access-token',
  'x-api-key',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
]);
