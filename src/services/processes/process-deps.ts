import type { Clock } from '../../contracts/clock.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { RunningSandboxes } from './running-sandboxes.ts';

export interface ProcessDeps {
  readonly sandboxes: RunningSandboxes;
  readonly driver: Pick<SandboxDriver, 'processes'>;
  readonly clock: Clock;
  readonly newId: () => string;
}
