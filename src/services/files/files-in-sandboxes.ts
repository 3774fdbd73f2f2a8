import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { requireContainer, runningSandbox } from '../../actors/sandbox/commands/exec-in-sandbox.ts';
import type { FileDeps } from './files.ts';

export const filesInSandboxes = ({
  supervisor,
  driver,
  clock,
}: {
  readonly supervisor: Supervisor;
  readonly driver: Pick<SandboxDriver, 'files'>;
  readonly clock: Clock;
}): FileDeps => ({
  files: driver.files,
  requireRunning: async (caller, sandboxId, container) => {
    requireContainer(await runningSandbox(supervisor, caller, sandboxId), container);
  },
  begin: (sandboxId) => {
    supervisor.send(sandboxId, { type: 'WORK_BEGAN', now: clock.now() });
    return () => {
      supervisor.send(sandboxId, { type: 'WORK_ENDED', now: clock.now() });
    };
  },
});
