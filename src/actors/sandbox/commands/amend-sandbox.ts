import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import { RecordConflict, type SandboxDriver } from '../../../contracts/sandbox-driver.ts';
import type { ClaimChange } from '../../../model/claim-change.ts';
import { type IfMatch, requireMatch } from '../../../model/if-match.ts';
import { sandboxNotFound, sandboxNotRunning, unavailable } from '../../../model/refusals.ts';
import type { Claim } from '../../../model/sandbox.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { findSandbox } from './find-sandbox.ts';
import { viewOf } from '../sandbox-snapshot.ts';
import { Permits } from '../../../lib/permits.ts';
import type { SandboxView } from '../../views.ts';

export interface AmendSandboxDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
}

const DEADLINE_MS = 5_000;
const MOST_CHANGES = 64;

/**
 * Counts as activity. `setIdleTimeout`: 0 for never (operation `PUT
 * /sandboxes/{sandboxId}/idle-timeout`). `setSandboxEnd`: regardless of activity (`/timeout` and
 * `/connect` of the compatible API).
 */
export const sandboxAmendments = (
  deps: AmendSandboxDeps,
): Pick<SandboxOperations, 'setIdleTimeout' | 'setSandboxEnd'> => {
  /** Changes of one process run in turn, so that they never conflict with each other. */
  const underWay = new Map<string, Promise<unknown>>();
  const changes = new Permits({ sandbox: MOST_CHANGES });
  const inTurn = async (
    caller: Caller,
    sandboxId: string,
    amendment: Omit<Amendment, 'sandboxId' | 'until'>,
  ): Promise<SandboxView> => {
    const release = changes.take({ sandbox: sandboxId }, () =>
      unavailable('the sandbox is being changed too often; try again'),
    );
    const until = deps.clock.now() + DEADLINE_MS;
    const turn = (underWay.get(sandboxId) ?? Promise.resolve()).then(() =>
      amend(deps, caller, { ...amendment, sandboxId, until }),
    );
    const settled = turn.catch(() => undefined);
    underWay.set(sandboxId, settled);
    try {
      return await turn;
    } finally {
      release();
      if (underWay.get(sandboxId) === settled) underWay.delete(sandboxId);
    }
  };
  return {
    setIdleTimeout: (caller, sandboxId, { idleTimeoutMs, ifMatch }) =>
      inTurn(caller, sandboxId, { ifMatch, changeOf: () => ({ idleTimeoutMs }) }),
    setSandboxEnd: (caller, sandboxId, { lifetimeMs, extend }) =>
      inTurn(caller, sandboxId, {
        changeOf: (claim) => {
          const endsAt = deps.clock.now() + lifetimeMs;
          const before = claim.endsAt ?? Number.POSITIVE_INFINITY;
          return extend && before >= endsAt ? undefined : { endsAt };
        },
      }),
  };
};

interface Amendment {
  readonly sandboxId: string;
  readonly changeOf: (claim: Claim) => ClaimChange | undefined;
  readonly ifMatch?: IfMatch;
  readonly until: number;
}

const amend = async (
  deps: AmendSandboxDeps,
  caller: Caller,
  { sandboxId, changeOf, ifMatch, until }: Amendment,
): Promise<SandboxView> => {
  const { supervisor, driver, clock } = deps;
  for (;;) {
    const found = await findSandbox(supervisor, caller, { sandboxId });
    const { status, context } = found;
    if (status !== 'Running' || !context.record?.claim) throw sandboxNotRunning(status);
    requireMatch(ifMatch, context.record.revision);
    // A change of another replica may win repeatedly.
    if (clock.now() >= until)
      throw unavailable('the sandbox was changed by another request; try again');
    const change = changeOf(context.record.claim);
    if (!change) return viewOf(found, clock.now());
    try {
      const record = await driver.amend(context.record.id, change, context.record.revision);
      supervisor.send(sandboxId, { type: 'AMENDED', record, now: clock.now() });
      const after = supervisor.sandbox(sandboxId);
      if (!after) throw sandboxNotFound();
      return viewOf(after, clock.now());
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      await supervisor.refresh(context.record.id, caller.namespace, 'never');
    }
  }
};
