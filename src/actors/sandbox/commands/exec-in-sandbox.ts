import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import {
  ContainerGone,
  InstanceGone,
  type SandboxDriver,
} from '../../../contracts/sandbox-driver.ts';
import {
  containerNotRunning,
  invalidArgument,
  sandboxNotFound,
  sandboxNotRunning,
} from '../../../model/refusals.ts';
import { tooManyCommands } from '../../../model/limit-refusals.ts';
import { tenantKey } from '../../../model/tenant.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import type { ClaimEnv } from '../claim-env.ts';
import { findSandbox } from './find-sandbox.ts';
import { sandboxPermits } from './sandbox-permits.ts';

const MOST_COMMANDS = 64;
/** Over all sandboxes. Each may buffer 2 MiB of output in this process. */
const MOST_COMMANDS_OF_TENANT = 256;

/**
 * The sandbox counts as active until the command ends (operation `POST
 * /sandboxes/{sandboxId}/exec`).
 */
export const execInSandbox = (deps: {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
  readonly claimEnv: Pick<ClaimEnv, 'over'>;
}): SandboxOperations['execInSandbox'] => {
  const begin = sandboxPermits(
    { sandbox: MOST_COMMANDS, tenant: MOST_COMMANDS_OF_TENANT },
    tooManyCommands,
  );
  return async (caller, sandboxId, { request, signal }) => {
    const { supervisor, driver, clock, claimEnv } = deps;
    const snapshot = await runningSandbox(supervisor, caller, sandboxId);
    requireContainer(snapshot, request.container);
    const env = claimEnv.over(snapshot.context.record, request.env);
    const release = begin(sandboxId, tenantKey(caller));
    supervisor.send(sandboxId, { type: 'WORK_BEGAN', now: clock.now() });
    try {
      return await driver.exec(sandboxId, { ...request, ...(env ? { env } : {}) }, signal);
    } catch (error) {
      if (error instanceof InstanceGone) throw sandboxNotFound();
      if (error instanceof ContainerGone) throw containerNotRunning(request.container);
      throw error;
    } finally {
      release();
      supervisor.send(sandboxId, { type: 'WORK_ENDED', now: clock.now() });
    }
  };
};

/** Resumes the sandbox first if its claim permits that. Refuses with 409. */
export const runningSandbox = async (
  supervisor: Supervisor,
  caller: Parameters<SandboxOperations['execInSandbox']>[0],
  sandboxId: string,
): Promise<SandboxSnapshot> => {
  return await supervisor.pauses.awake(
    running(await findSandbox(supervisor, caller, { sandboxId })),
  );
};

export const running = (snapshot: SandboxSnapshot): SandboxSnapshot => {
  if (snapshot.status !== 'Running') throw sandboxNotRunning(snapshot.status);
  return snapshot;
};

export const requireContainer = (
  { context }: SandboxSnapshot,
  container: string | undefined,
): void => {
  const names = Object.keys(context.record?.containerImages ?? {});
  if (container !== undefined && !names.includes(container))
    throw invalidArgument('container', 'no such container', names);
};
