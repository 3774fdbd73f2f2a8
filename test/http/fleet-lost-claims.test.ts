import { expect } from 'chai';
import { AnswerLost, clusterUnavailable } from '../../src/model/fleet/cluster-refusals.ts';
import { askAgain, type LostClaim } from '../../src/fleet/routing/claim-key.ts';
import type { WayToCluster } from '../../src/fleet/replication/fleet-operations.ts';
import type { Operations } from '../../src/services/operations.ts';
import type { SandboxView } from '../../src/actors/views.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aServer } from './a-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

type Asked = Parameters<Operations['claimSandbox']>[1];

const KEY = '0190d4a5-7b1e-4c3a-9f00-000000000001';
const SAID = { 'Sandpool-Fleet-Claim-Key': `again ${KEY}` };

const WITHOUT_AND_WITH_KEY: readonly Readonly<Record<string, string>>[] = [
  {},
  { 'Idempotency-Key': 'k' },
];

describe('a claim on another cluster with a lost answer', () => {
  let servers: FleetOfServers;
  let clock: TestClock;
  /** What `w1` was asked, in order. */
  let asked: Asked[];

  beforeEach(async () => {
    clock = new TestClock();
    asked = [];
    servers = await aFleetOfServers(undefined, aServer, clock);
    for (const { tenant } of Object.values(servers.workers))
      await tenant.post('/sandboxpools', { name: 'm', templateName: 'default', replicas: 3 });
    servers.manager.operations.claimPlaces = (_caller, name) =>
      (name === 'e' ? ['w1', 'w2'] : []).map((clusterId) => ({
        clusterId,
        poolName: 'm',
        took: () => undefined,
      }));
  });
  afterEach(() => servers.stop());

  /** The first claim is carried out, and the link cut before its answer goes over it. */
  const losesFirst = (): void => {
    const { operations } = servers.workers['w1']!;
    const { claimSandbox } = operations;
    const claimed = new Map<string, SandboxView>();
    Object.assign(operations, {
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        const [, request] = of;
        asked.push(request);
        const key = request.opening?.mark.key ?? '';
        const earlier = claimed.get(key);
        if (earlier) {
          await request.opening?.open();
          return earlier;
        }
        const view = await claimSandbox(...of);
        claimed.set(key, view);
        if (asked.length === 1) servers.cut('w1');
        return view;
      },
    });
  };
  const isCut = () => eventually(() => !servers.fleet.links.find('w1'), 'w1 is cut');
  const claim = (poolName: string, headers: Readonly<Record<string, string>> = {}) =>
    servers.manager.tenant.post('/sandboxes', { poolName }, { headers });

  for (const poolName of ['w1::m', 'e'])
    for (const headers of WITHOUT_AND_WITH_KEY)
      it(`succeeds once from ${poolName}, and is repeated over the next link, ${'Idempotency-Key' in headers ? 'by the client’s key' : 'without a key of the client’s'}`, async () => {
        losesFirst();
        const answered = claim(poolName, headers);
        await isCut();
        await servers.mend('w1');
        await eventually(() => clock.waiting > 0, 'it waits for a link');
        clock.advance(100);
        const { status, json, headers: given } = await answered;
        expect(status).to.equal(201);
        const [w1, w2] = [servers.workers['w1']!.operations, servers.workers['w2']!.operations];
        expect(json.sandbox).to.include({ sandboxId: `w1.${[...w1.sandboxes.keys()].join()}` });
        expect([asked.length, w2.sandboxes.size]).to.deep.equal([2, 0]);
        expect(asked[0]?.opening?.mark).to.deep.equal(asked[1]?.opening?.mark);
        const isTold = 'Idempotency-Key' in headers ? 'true' : undefined;
        expect(given['idempotency-replayed']).to.equal(isTold);
      });

  it('is refused as unknown if no link returns, and not tried elsewhere', async () => {
    losesFirst();
    const answered = claim('e');
    await isCut();
    let isOver = false;
    void answered.finally(() => {
      isOver = true;
    });
    await eventually(() => {
      clock.advance(500);
      return isOver;
    }, 'it is refused');
    const { status, json } = await answered;
    expect([status, json.errorCode]).to.deep.equal([503, 'CLUSTER_UNAVAILABLE']);
    expect(json['error']).to.include('the outcome is unknown');
    expect(servers.workers['w2']!.operations.sandboxes.size).to.equal(0);
  });

  it("ignores a client's header in the name of the manager", async () => {
    losesFirst();
    asked.length = 5; // none is lost
    expect((await claim('w1::m', SAID)).status).to.equal(201);
    const { tenant } = servers.workers['w1']!;
    expect((await tenant.post('/sandboxes', { poolName: 'm' }, { headers: SAID })).status).to.equal(
      201,
    );
    const [over, direct] = asked.slice(5);
    expect([over?.opening?.isFirst, direct?.opening]).to.deep.equal([true, undefined]);
  });
});

describe('a repeated claim', () => {
  const lost = new AnswerLost('w1');
  const way = { clusterId: 'w1' } as WayToCluster;
  const refusedWith = (errorCode: string, status = 429) => ({ status, body: { errorCode } });

  /** Asks as long as it does, each answer in turn; resolves with what came of it. */
  const outcome = async (answers: readonly LostClaim['ask'][], isLinked = true) => {
    const clock = new TestClock();
    const within: number[] = [];
    let over = false;
    const ended = askAgain({
      lost,
      clusterId: 'w1',
      deps: {
        clock,
        fleet: {
          wayTo: () => {
            if (!isLinked) throw clusterUnavailable('w1', 'is not connected; try again');
            return way;
          },
        },
      },
      signal: new AbortController().signal,
      ask: async (to, withinMs) => {
        within.push(withinMs);
        const ask = answers[within.length - 1];
        if (!ask) throw new AnswerLost('w1');
        return await ask(to, withinMs);
      },
    }).finally(() => {
      over = true;
    });
    const answered = await Promise.all([
      ended.catch((error: unknown) => error),
      eventually(() => {
        if (!over) clock.advance(100);
        return over;
      }, 'it is over'),
    ]);
    return { answered: answered[0], within };
  };
  const inFlight = async () => refusedWith('IDEMPOTENCY_IN_FLIGHT', 409);

  it('waits for a claim in progress', async () => {
    const done = { status: 201, body: {} };
    const { answered, within } = await outcome([inFlight, inFlight, async () => done]);
    expect([answered, within.length]).to.deep.equal([done, 3]);
  });

  it('stays unknown after a refusal, since the first may still arrive', async () => {
    for (const code of ['POOL_EXHAUSTED', 'POOL_NOT_FOUND', 'QUOTA_EXCEEDED']) {
      const { answered, within } = await outcome([async () => refusedWith(code)]);
      expect([answered, within.length]).to.deep.equal([lost, 1]);
    }
  });

  it('ends in time, whatever the cluster does', async () => {
    expect((await outcome([], false)).answered).to.equal(lost);
    const { answered, within } = await outcome([]);
    expect(answered).to.equal(lost);
    expect(within.length).to.be.within(2, 4);
    expect(Math.max(...within)).to.be.lessThan(2_500);
  });

  it('is cancelled if its client has left', async () => {
    const client = new AbortController();
    client.abort();
    let asked = 0;
    const deps = { clock: new TestClock(), fleet: { wayTo: () => way } };
    const ask = async () => {
      asked += 1;
      return { status: 201, body: {} };
    };
    const { signal } = client;
    const again = { lost, clusterId: 'w1', deps, signal, isFor: () => true, ask };
    expect([await rejection(askAgain(again)), asked]).to.deep.equal([lost, 0]);
  });
});
