/** Who asks over a link, and for what. */
export const CALLER = {
  namespace: 'team-blue',
  team: 'blue',
  user: 'ada',
  role: 'user',
  keyId: 'k1',
} as const;
export const REQUEST = { method: 'POST', target: '/sandboxes', idempotencyKey: undefined };
