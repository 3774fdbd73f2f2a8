import { Permits } from '../../../lib/permits.ts';
import type { Refusal } from '../../../model/refusals.ts';

const WHO = { sandbox: 'the sandbox has', tenant: 'you have' } as const;

/**
 * Limits concurrent work in one sandbox, and of one tenant over all sandboxes. The returned
 * function takes a permit for a sandbox and a `tenantKey`, and returns its repeatable release. It
 * throws the error of `tooMany` if no permit is left.
 */
export const sandboxPermits = (
  most: { readonly sandbox: number; readonly tenant: number },
  tooMany: (who: 'the sandbox has' | 'you have', limit: number) => Refusal,
): ((sandbox: string, tenant: string) => () => void) => {
  const permits = new Permits(most);
  return (sandbox, tenant) =>
    permits.take({ sandbox, tenant }, (kind, limit) => tooMany(WHO[kind], limit));
};
