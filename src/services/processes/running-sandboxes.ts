import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { TextPairs } from '../../model/claim-terms.ts';
import type { Caller } from '../../model/tenant.ts';
import type { ClaimEnv } from '../../actors/sandbox/claim-env.ts';
import { requireContainer, runningSandbox } from '../../actors/sandbox/commands/exec-in-sandbox.ts';

export interface RunningSandboxes {
  require(caller: Caller, sandboxId: string, container?: string): Promise<RunningSandbox>;
  /** Restarts the idle timeout. */
  active(sandboxId: string): void;
  /** Keeps the sandbox from being idle until the returned function is called. */
  busy(sandboxId: string): () => void;
}

export interface RunningSandbox {
  /** Overridden by `own`. Throws a Refusal. */
  envOver(own: TextPairs | undefined): TextPairs | undefined;
}

export const runningSandboxes = ({
  supervisor,
  clock,
  claimEnv,
}: {
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly claimEnv: Pick<ClaimEnv, 'over'>;
}): RunningSandboxes => ({
  require: async (caller, sandboxId, container) => {
    const snapshot = await runningSandbox(supervisor, caller, sandboxId);
    requireContainer(snapshot, container);
    return { envOver: (own) => claimEnv.over(snapshot.context.record, own) };
  },
  active: (sandboxId) => {
    supervisor.send(sandboxId, { type: 'ACTIVE', now: clock.now() });
  },
  busy: (sandboxId) => {
    supervisor.send(sandboxId, { type: 'WORK_BEGAN', now: clock.now() });
    return () => {
      supervisor.send(sandboxId, { type: 'WORK_ENDED', now: clock.now() });
    };
  },
});
