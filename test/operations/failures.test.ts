import { expect } from 'chai';
import { NotJoinable, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { refusalOf } from '../../src/http/reply/error-table.ts';
import { NotSent, refusedBy } from '../../src/k8s/api/api-errors.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { deleteSandbox } from '../../src/actors/sandbox/commands/delete-sandbox.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import { getSandbox } from '../../src/actors/sandbox/commands/get-sandbox.ts';
import { isReady } from '../../src/actors/sandbox/commands/is-ready.ts';
import { sandboxLogs } from '../../src/actors/sandbox/commands/sandbox-logs.ts';
import { sandboxAmendments } from '../../src/actors/sandbox/commands/amend-sandbox.ts';
import { createExecToken, openTerminal } from '../../src/actors/sandbox/commands/terminals.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';

const TRUE = { argv: ['true'], timeoutMs: 1_000, outputLimit: 1_024 };
const KEY = { ...alice, expiresAt: Number.MAX_SAFE_INTEGER } as unknown as ApiKeyRecord;
const KEYS = { good: async () => KEY, find: () => KEY, followEnd: () => () => undefined };

const FAILURES: readonly Error[] = [
  new NotSent('connect ECONNREFUSED'),
  new OutcomeUnknown('no answer'),
  new NotJoinable('not yet'),
  ...[403, 409, 422, 429].map((status) => refusedBy(status, '', undefined)),
];
const ASKED = ['claim', 'amend', 'release', 'read', 'exec', 'attach', 'logs', 'probe'] as const;

const aWorld = async () => {
  const world = await aSupervisor({ pool: { replicas: 2 } });
  await eventually(() => world.supervisor.pools.get(world.pool.uid)?.counts.idle === 2, 'filled');
  const { id } = await world.claim(alice, { poolName: 'default' });
  return { ...world, id, apiKeys: KEYS, clusterId: 'local', endpointMode: 'gateway' as const };
};
type World = Awaited<ReturnType<typeof aWorld>>;

const OPERATIONS: Readonly<Record<string, (world: World) => Promise<unknown>>> = {
  claim: ({ claim }) => claim(alice, { poolName: 'default' }),
  get: (world) => getSandbox(world)(alice, world.id),
  is_ready: (world) => isReady(world)(alice, world.id),
  exec: (world) =>
    execInSandbox(world)(alice, world.id, { request: TRUE, signal: new AbortController().signal }),
  'idle-timeout': (world) =>
    sandboxAmendments(world).setIdleTimeout(alice, world.id, { idleTimeoutMs: 1_000 }),
  logs: (world) => sandboxLogs(world)(alice, world.id, { tailLines: 1 }),
  terminal: async (world) => {
    const token = await createExecToken(world)(alice, world.id);
    (
      await openTerminal({ ...world, mostOfTenant: 16 })({
        clusterId: 'local',
        sandboxId: world.id,
        token,
        cols: 80,
        rows: 24,
      })
    ).close();
  },
  delete: (world) => deleteSandbox(world)(alice, world.id),
};

/** The outcome, with time going by until there is one. */
const outcomeOf = async ({ clock }: World, work: Promise<unknown>): Promise<unknown> => {
  let outcome: { readonly error?: unknown } | undefined;
  work.then(
    () => {
      outcome = {};
    },
    (error: unknown) => {
      outcome = { error };
    },
  );
  for (let turn = 0; turn < 400 && !outcome; turn++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    if (turn > 100) clock.advance(100);
  }
  if (!outcome) throw new Error('no outcome within 30 s');
  return outcome.error;
};

describe("a driver's rejection", () => {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    it(`becomes a refusal for ${name}, for every request and failure`, async () => {
      for (const asked of ASKED) {
        for (const failure of FAILURES) {
          const world = await aWorld();
          for (let repeated = 0; repeated < 100; repeated++) world.driver.failNext(asked, failure);

          const error = await outcomeOf(world, operation(world));

          if (error !== undefined)
            expect(refusalOf(error), `${asked}: ${failure.name}`).not.to.equal(undefined);
        }
      }
    });
  }

  it('does not become a refusal if it is a bug', async () => {
    const world = await aWorld();
    world.driver.failNext('exec', new TypeError('a bug'));

    expect(
      refusalOf(await outcomeOf(world, OPERATIONS['exec']?.(world) ?? Promise.resolve())),
    ).to.equal(undefined);
  });
});
