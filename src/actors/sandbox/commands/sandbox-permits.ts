import { Permits } from '../../../lib/permits.ts';
import type { Refusal } from '../../../model/refusals.ts';

const WHO = { sandbox: 'the sandbox has', tenant: 'you have' } as const;

/**
 * Bounds what is under way at one time in a sandbox, and of a tenant in all sandboxes. The function
 * takes a permit for a sandbox and the `tenantKey` of a tenant. It returns what gives the permit
 * back, which may be repeated, or throws what `tooMany` makes if there is none.
 */
export const sandboxPermits = (
  most: { readonly sandbox: number; readonly tenant: number },
  tooMany: (who: 'the sandbox has' | 'you have', limit: number) => Refusal,
): ((sandbox: string, tenant: string) => () => void) => {
  const permits = new Permits(most);
  return (sandbox, tenant) =>
    permits.take({ sandbox, tenant }, (kind, limit) => tooMany(WHO[kind], limit));
};
