import type { SandboxSnapshot } from '../../actors/sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../../actors/sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { SandboxDriver } from '../../contracts/sandbox-driver.ts';
import { endpointNotFound } from '../../model/refusals.ts';
import { tooManyConnections } from '../../model/limit-refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import { running } from './exec-in-sandbox.ts';
import type { OpenEndpoint } from './sandbox-operations.ts';
import type { Operations } from '../operations.ts';
import { findSandbox, shownRunning } from './sandbox-view.ts';
import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';

/**
 * Requests and WebSockets under way to the endpoints of one sandbox, and of one tenant's all
 * together.
 */
const MOST_OF_SANDBOX = 256;
const MOST_OF_TENANT = 1_024;
/** Traffic is noted as activity once in so long. */
const TOUCH_MS = 1_000;

export interface OpenEndpointDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
}

/**
 * Opens the way to an endpoint of the caller's running sandbox. Nothing is dialled yet. Answers at
 * once where the mirror shows that it runs (of one that another replica has just ended the dial
 * fails), else once the truth was read.
 */
export const openEndpoint = ({
  supervisor,
  driver,
  clock,
}: OpenEndpointDeps): Operations['openEndpoint'] => {
  const ofSandbox = new KeyedSemaphore(MOST_OF_SANDBOX);
  const ofTenant = new KeyedSemaphore(MOST_OF_TENANT);

  const open = (caller: Caller, { context, sandboxId, name }: Wanted): OpenEndpoint => {
    const endpoints = context.record?.endpoints ?? {};
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined;
    if (!endpoint) throw endpointNotFound(Object.keys(endpoints));
    if (!ofSandbox.acquire(sandboxId)) throw tooManyConnections('the sandbox has', MOST_OF_SANDBOX);
    const tenant = tenantKey(caller);
    if (!ofTenant.acquire(tenant)) {
      ofSandbox.release(sandboxId);
      throw tooManyConnections('you have', MOST_OF_TENANT);
    }
    let touchedAt = context.activeAt;
    const touch = (): void => {
      const now = clock.now();
      if (now - touchedAt < TOUCH_MS) return;
      touchedAt = now;
      supervisor.send(sandboxId, { type: 'ACTIVE', now });
    };
    touch();
    let isOpen = true;
    const close = (): void => {
      if (!isOpen) return;
      isOpen = false;
      ofSandbox.release(sandboxId);
      ofTenant.release(tenant);
    };
    const { port, scheme } = endpoint;
    return {
      sandboxId,
      port,
      scheme,
      dial: (signal) => driver.dial(sandboxId, port, signal),
      touch,
      close,
    };
  };

  return (caller, sandboxId, name) => {
    const shown = shownRunning(supervisor, caller, sandboxId);
    if (shown && shown.context.record?.claim?.pausedAt === undefined)
      return open(caller, { context: shown.context, sandboxId, name });
    return findSandbox(supervisor, caller, sandboxId)
      .then((found) => supervisor.pauses.awake(running(found)))
      .then(({ context }) => open(caller, { context, sandboxId, name }));
  };
};

interface Wanted {
  readonly context: SandboxSnapshot['context'];
  readonly sandboxId: string;
  readonly name: string;
}
