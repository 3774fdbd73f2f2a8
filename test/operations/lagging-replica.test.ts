import { expect } from 'chai';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { deleteSandbox } from '../../src/actors/sandbox/commands/delete-sandbox.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import { getSandbox } from '../../src/actors/sandbox/commands/get-sandbox.ts';
import { isReady } from '../../src/actors/sandbox/commands/is-ready.ts';
import { endpointOperations } from '../../src/actors/sandbox/commands/open-endpoint.ts';
import { sandboxEvents } from '../../src/actors/sandbox/commands/sandbox-events.ts';
import { sandboxLogs } from '../../src/actors/sandbox/commands/sandbox-logs.ts';
import { sandboxAmendments } from '../../src/actors/sandbox/commands/amend-sandbox.ts';
import { createExecToken, openTerminal } from '../../src/actors/sandbox/commands/terminals.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';
import {
  aReplica,
  sharedStores,
  type SharedReplica,
} from '../support/harness/shared-supervisors.ts';
import { testClaimEnv } from '../support/builders/test-claim-env.ts';

const TRUE = { argv: ['true'], timeoutMs: 1_000, outputLimit: 1_024 };
const KEY = { ...alice, expiresAt: Number.MAX_SAFE_INTEGER } as unknown as ApiKeyRecord;

/**
 * A sandbox that replica `a` claimed; whether replica `b` was told of instance and claim is the
 * test's.
 */
const aWorld = async (options: { readonly seen: 'idle' | 'nothing' }) => {
  const definition = aDefinition({}, { endpoints: { web: { port: 80, scheme: 'http' } } });
  const stores = await sharedStores({ pool: { replicas: 2, definition } });
  const shared = aCoordination(stores.clock);
  const [a, b] = [await aReplica(stores, shared), await aReplica(stores, shared)];
  if (options.seen === 'nothing') b.driver.lag();
  a.lead();
  const full = (replica: SharedReplica): boolean =>
    replica.supervisor.pools.get(stores.pool.uid)?.counts.idle === 2;
  await eventually(() => full(a) && (options.seen === 'nothing' || full(b)), 'filled');
  b.driver.lag();
  const { id } = await a.claim(alice, { poolName: 'default' });
  const apiKeys = { good: async () => KEY, find: () => KEY, followEnd: () => () => undefined };
  const depsOf = (replica: SharedReplica) => ({
    supervisor: replica.supervisor,
    driver: replica.driver,
    events: replica.events,
    coordination: shared,
    claimEnv: testClaimEnv,
    history: stores.history,
    clock: stores.clock,
    clusterId: 'local',
    apiKeys,
    endpointMode: 'gateway' as const,
  });
  return { ...stores, a: depsOf(a), b: depsOf(b), id };
};
type World = Awaited<ReturnType<typeof aWorld>>;

const terminal = (deps: World['a'], sandboxId: string, token: string) =>
  openTerminal({ ...deps, mostOfTenant: 16 })({
    clusterId: 'local',
    sandboxId,
    token,
    cols: 80,
    rows: 24,
  });

/** Every operation by id, on the replica that is behind. */
const BY_ID: Readonly<Record<string, (world: World) => unknown>> = {
  GET: ({ b, id }) => getSandbox(b)(alice, id),
  is_ready: ({ b, id }) => isReady(b)(alice, id),
  exec: ({ b, id }) =>
    execInSandbox(b)(alice, id, { request: TRUE, signal: new AbortController().signal }),
  'exec-token': ({ b, id }) => createExecToken(b)(alice, id),
  'the endpoint': async ({ b, id }) =>
    (await endpointOperations(b).openEndpoint(alice, id, 'web')).close(),
  'the terminal': async ({ a, b, id }) =>
    (await terminal(b, id, await createExecToken(a)(alice, id))).close(),
  'idle-timeout': ({ b, id }) =>
    sandboxAmendments(b).setIdleTimeout(alice, id, { idleTimeoutMs: 1_000 }),
  logs: ({ b, id }) => sandboxLogs(b)(alice, id, { tailLines: 1 }),
  events: ({ b, id }) => sandboxEvents(b)(alice, id),
  DELETE: ({ b, id }) => deleteSandbox(b)(alice, id),
};

describe('a replica with a delayed mirror', () => {
  for (const [operation, call] of Object.entries(BY_ID)) {
    for (const seen of ['idle', 'nothing'] as const) {
      it(`answers ${operation} of a sandbox just claimed elsewhere, having seen ${seen === 'idle' ? 'it idle' : 'nothing of it'}`, async () => {
        await call(await aWorld({ seen }));
      });
    }
  }

  it('keeps a terminal token if the state of its sandbox cannot be read', async () => {
    const world = await aWorld({ seen: 'idle' });
    const token = await createExecToken(world.a)(alice, world.id);
    world.truth.failNext('read', new Error('away'));

    const refused = await rejection(terminal(world.b, world.id, token));
    const opened = await terminal(world.a, world.id, token);

    expect(refused).to.have.property('code', 'UNAVAILABLE');
    opened.close();
  });

  it('opens one terminal for a token that many clients send at once', async () => {
    const world = await aWorld({ seen: 'idle' });
    const token = await createExecToken(world.a)(alice, world.id);

    const outcomes = await Promise.allSettled(
      [world.a, world.b, world.a, world.b].map((deps) => terminal(deps, world.id, token)),
    );

    const opened = outcomes.flatMap((outcome) =>
      outcome.status === 'fulfilled' ? [outcome.value] : [],
    );
    expect(opened).to.have.length(1);
    for (const outcome of outcomes)
      if (outcome.status === 'rejected')
        expect(outcome.reason).to.have.property('code', 'INVALID_TOKEN');
    for (const each of opened) each.close();
  });
});
