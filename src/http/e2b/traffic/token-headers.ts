/** Headers, in small letters, that hold a secret of this API, or say which sandbox is asked. */
export const TOKEN_HEADERS: ReadonlySet<string> = new Set([
  'x-access-token',
  'e2b-traffic-access-token',
  'x-api-key',
  'e2b-sandbox-id',
  'e2b-sandbox-port',
]);
