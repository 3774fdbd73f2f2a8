import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { findSandbox } from './find-sandbox.ts';
import { viewOf } from '../sandbox-snapshot.ts';
import type { EndpointView } from '../../views.ts';

export interface GetSandboxDeps {
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  /**
   * `direct` shows the real address of an endpoint on this machine's own network. All others appear
   * under the daemon's URL.
   */
  readonly endpointMode: 'gateway' | 'direct';
}

/** Operation `GET /sandboxes/{sandboxId}`; does not find finished ones. */
export const getSandbox =
  ({ supervisor, clock, endpointMode }: GetSandboxDeps): SandboxOperations['getSandbox'] =>
  async (caller, sandboxId) => {
    const snapshot = await findSandbox(supervisor, caller, {
      sandboxId,
      adminsToo: true,
    });
    const endpoints =
      snapshot.status === 'Running' ? (snapshot.context.record?.endpoints ?? {}) : {};
    const shown = Object.entries(endpoints).map(
      ([name, { port, scheme, onHost }]): [string, EndpointView] => [
        name,
        { port, scheme, direct: onHost && endpointMode === 'direct' },
      ],
    );
    const { endedContainers } = snapshot.context;
    return {
      ...viewOf(snapshot, clock.now()),
      endpoints: Object.fromEntries(shown),
      endedContainers,
    };
  };
