import type { InstanceId } from '../../model/identifiers.ts';
import type { Caller, Tenant } from '../../model/tenant.ts';
import type { ClaimRequest } from '../sandbox/commands/sandbox-operations.ts';
import type { SandboxView } from '../views.ts';
import { EffectIsOver } from '../../model/approvals/approval-refusals.ts';
import { findClaimByKey, mayHaveClaimed, type FindClaimDeps } from './find-claim-by-key.ts';
import type { IdempotentRequest, NewRequest } from '../request/idempotent-request.ts';

export const openAndFind = async (
  deps: FindClaimDeps,
  caller: Caller,
  opening: IdempotentRequest,
): Promise<SandboxView | undefined> => {
  const { instance, isUnsure } = await opening.open();
  if (isUnsure && !opening.isFirst)
    await deps.supervisor.refreshClaimsByKey(opening.mark.key, caller.namespace);
  return await findEarlier(deps, opening, { instance, owner: caller });
};

/** Only reads if the admission showed that there may be one. */
export const findAfterAdmission = async (
  deps: FindClaimDeps,
  { opening, mark: ownMark }: Pick<ClaimRequest, 'opening' | 'mark'>,
  { owner, instance, isUnsure }: NewRequest & { readonly owner: Tenant },
): Promise<SandboxView | undefined> => {
  const mark = opening?.mark ?? ownMark;
  if (!mark) return undefined;
  if (isUnsure) await deps.supervisor.refreshClaimsByKey(mark.key, owner.namespace);
  return opening
    ? await findEarlier(deps, opening, { instance, owner })
    : await findClaimByKey(deps)(owner, mark, instance);
};

const findEarlier = async (
  deps: FindClaimDeps,
  opening: IdempotentRequest,
  { instance, owner }: { readonly instance: InstanceId | undefined; readonly owner: Tenant },
): Promise<SandboxView | undefined> => {
  const found = await findClaimByKey(deps)(owner, opening.mark, instance);
  opening.foundEarlier = found !== undefined;
  if (!found && opening.mayBeDone && mayHaveClaimed(deps, opening.mark, instance))
    throw new EffectIsOver();
  return found;
};
