import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { SandboxDriver } from '../contracts/sandbox-driver.ts';
import { endpointNotFound, tooManyConnections } from '../model/refusals.ts';
import { tenantKey } from '../model/tenant.ts';
import { running } from './exec-in-sandbox.ts';
import type { Operations } from './operations.ts';
import { shownSandbox } from './sandbox-view.ts';
import { Seats } from './seats.ts';

/** Requests and WebSockets under way to the endpoints of one sandbox, and of one tenant's all together. */
const MOST_OF_SANDBOX = 256;
const MOST_OF_TENANT = 1_024;
/** Traffic is noted as activity once in so long. */
const TOUCH_MS = 1_000;

/** Opens the way to an endpoint of the caller's running sandbox. Nothing is dialled yet. */
export const openEndpoint = (deps: { readonly supervisor: Supervisor; readonly driver: SandboxDriver; readonly clock: Clock }): Operations['openEndpoint'] => {
  const ofSandbox = new Seats(MOST_OF_SANDBOX);
  const ofTenant = new Seats(MOST_OF_TENANT);
  return (caller, sandboxId, name) => {
    const { supervisor, driver, clock } = deps;
    // As the mirror shows it: of one that another replica has just ended the dial fails.
    const { context } = running(shownSandbox(supervisor, caller, sandboxId));
    const endpoints = context.record?.endpoints ?? {};
    const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined;
    if (!endpoint) throw endpointNotFound(Object.keys(endpoints));
    if (!ofSandbox.take(sandboxId)) throw tooManyConnections('the sandbox has', MOST_OF_SANDBOX);
    const tenant = tenantKey(caller);
    if (!ofTenant.take(tenant)) {
      ofSandbox.leave(sandboxId);
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
    let open = true;
    const close = (): void => {
      if (!open) return;
      open = false;
      ofSandbox.leave(sandboxId);
      ofTenant.leave(tenant);
    };
    return { sandboxId, port: endpoint.port, scheme: endpoint.scheme, dial: (signal) => driver.dial(sandboxId, endpoint.port, signal), touch, close };
  };
};
