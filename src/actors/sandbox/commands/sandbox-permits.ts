import { Permits } from '../../../lib/permits.ts';
import type { Refusal } from '../../../model/refusals.ts';

const WHO = { sandbox: 'the sandbox has', tenant: 'you have' } as const;

/**
 * In one sandbox, and of one tenant over all sandboxes. The release may be repeated. Throws the
 * error of `tooMany` if no permit is left.
 */
export const sandboxPermits = (
  most: { readonly sandbox: number; readonly tenant: number },
  tooMany: (who: 'the sandbox has' | 'you have', limit: number) => Refusal,
): ((sandbox: string, tenant: string) => () => void) => {
  const permits = new Permits(most);
  return (sandbox, tenant) =>
    permits.take({ sandbox, tenant }, (kind, limit) => tooMany(WHO[kind], limit));
};
