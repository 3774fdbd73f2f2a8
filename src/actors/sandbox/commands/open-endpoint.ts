import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { SandboxDriver } from '../../../contracts/sandbox-driver.ts';
import { endpointNotFound } from '../../../model/refusals.ts';
import { tooManyConnections } from '../../../model/limit-refusals.ts';
import { tenantKey, type Caller } from '../../../model/tenant.ts';
import type { ClaimEnv } from '../claim-env.ts';
import { running } from './exec-in-sandbox.ts';
import type { OpenEndpoint, SandboxOperations } from './sandbox-operations.ts';
import { findSandbox, shownRunning } from './find-sandbox.ts';
import { sandboxPermits } from './sandbox-permits.ts';

const MOST_OF_SANDBOX = 256;
const MOST_OF_TENANT = 1_024;
const TOUCH_MS = 1_000;

export interface OpenEndpointDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
  readonly claimEnv: Pick<ClaimEnv, 'over'>;
}

/**
 * Does not dial. Synchronous if the mirror shows the sandbox running; if another replica has just
 * ended it, the dial fails.
 */
export const endpointOperations = ({
  supervisor,
  driver,
  clock,
  claimEnv,
}: OpenEndpointDeps): Pick<SandboxOperations, 'openEndpoint' | 'openPort'> => {
  const connect = sandboxPermits(
    { sandbox: MOST_OF_SANDBOX, tenant: MOST_OF_TENANT },
    tooManyConnections,
  );

  const open = (caller: Caller, { context, sandboxId, endpoint }: Opening): OpenEndpoint => {
    const close = connect(sandboxId, tenantKey(caller));
    let touchedAt = context.activeAt;
    const touch = (): void => {
      const now = clock.now();
      if (now - touchedAt < TOUCH_MS) return;
      touchedAt = now;
      supervisor.send(sandboxId, { type: 'ACTIVE', now });
    };
    touch();
    const { port, scheme } = endpoint;
    return {
      sandboxId,
      port,
      scheme,
      env: () => (context.record?.onHost ? undefined : claimEnv.over(context.record)),
      dial: (signal) => driver.dial(sandboxId, port, signal),
      touch,
      close,
    };
  };

  const openWhereItRuns = (
    caller: Caller,
    sandboxId: string,
    endpointIn: (context: Context) => Endpoint,
  ): OpenEndpoint | Promise<OpenEndpoint> => {
    const opened = ({ context }: Pick<SandboxSnapshot, 'context'>): OpenEndpoint =>
      open(caller, { context, sandboxId, endpoint: endpointIn(context) });
    const shown = shownRunning(supervisor, caller, sandboxId);
    if (shown && shown.context.record?.claim?.pausedAt === undefined) return opened(shown);
    return findSandbox(supervisor, caller, { sandboxId })
      .then((found) => supervisor.pauses.awake(running(found)))
      .then(opened);
  };

  return {
    openEndpoint: (caller, sandboxId, name) =>
      openWhereItRuns(caller, sandboxId, ({ record }) => {
        const endpoints = record?.endpoints ?? {};
        const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined;
        if (!endpoint) throw endpointNotFound(Object.keys(endpoints));
        return endpoint;
      }),
    openPort: (caller, sandboxId, port) =>
      openWhereItRuns(caller, sandboxId, () => ({ port, scheme: 'http' })),
  };
};

type Context = SandboxSnapshot['context'];
type Endpoint = Pick<OpenEndpoint, 'port' | 'scheme'>;

interface Opening {
  readonly context: Context;
  readonly sandboxId: string;
  readonly endpoint: Endpoint;
}
