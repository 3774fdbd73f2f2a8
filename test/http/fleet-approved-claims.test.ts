import { expect } from 'chai';
import { EffectIsOver } from '../../src/model/approvals/approval-refusals.ts';
import { idempotencyInFlight } from '../../src/model/refusals.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { anApprovingServer, approvalIdOf, type ApprovingServer } from './an-approving-server.ts';
import { aFleetOfServers, type FleetOfServers } from './fleet-support.ts';

describe('an approved claim by the name of an env over clusters', () => {
  let servers: FleetOfServers;
  let approving: ApprovingServer;
  let passingClock: TestClock;

  const serverOf = (clusterId: string) =>
    clusterId === 'hub' ? servers.manager : servers.workers[clusterId]!;
  /** The members are tried in this order; each is the pool `p` of its cluster. */
  const preferring = (...clusters: readonly string[]): void => {
    servers.manager.operations.claimPlaces = (_caller, name) =>
      (name === 'e' ? clusters : []).map((clusterId) => ({
        ...{ clusterId, poolName: 'p' },
        took: () => undefined,
      }));
  };
  const stock = async (clusterId: string, replicas: number): Promise<void> => {
    const { status } = await serverOf(clusterId).tenant.put('/sandboxpools/p', { replicas });
    expect(status).to.equal(200);
  };
  /** The Idempotency-Key that claims have. */
  let key: string | undefined;
  const claim = (poolName = 'e') =>
    servers.manager.tenant.post(
      '/sandboxes',
      { poolName },
      key === undefined ? {} : { headers: { 'Idempotency-Key': key } },
    );
  /** The sandbox's id, or what refuses it. Uses of one grant are moments apart. */
  const claimed = async (): Promise<string> => {
    approving.clock.advance(1);
    const { json } = await claim();
    return json.sandbox?.['sandboxId'] ?? String(json.errorCode);
  };
  const approved = async (poolName?: string): Promise<void> => {
    const { status } = await approving.approve(approvalIdOf(await claim(poolName)));
    expect(status).to.equal(200);
  };
  const made = (): number[] =>
    ['w1', 'w2', 'hub'].map((each) => serverOf(each).operations.sandboxes.size);
  const isCut = (): Promise<void> => eventually(() => !servers.fleet.links.find('w1'), 'w1 is cut');
  const mend = async (): Promise<void> => {
    await isCut();
    await servers.mend('w1');
  };
  /** Moves the clock of what is passed on until it is answered. */
  const inTime = async <T>(answered: Promise<T>): Promise<T> => {
    let isOver = false;
    void answered.finally(() => (isOver = true));
    await eventually(() => {
      if (!isOver) passingClock.advance(100);
      return isOver;
    }, 'it is answered');
    return await answered;
  };
  /** Has `w1` claim what it is asked for, and its link cut before the answer goes over it. */
  const losesAnswers = (): { readonly asked: boolean[]; isOver: boolean } => {
    const { operations } = serverOf('w1');
    const { claimSandbox } = operations;
    const seen = { asked: [] as boolean[], isOver: false };
    Object.assign(operations, {
      claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
        const { mayBeDone = false } = of[1].opening ?? {};
        seen.asked.push(mayBeDone);
        if (seen.isOver && mayBeDone) throw new EffectIsOver();
        const view = await claimSandbox(...of);
        servers.cut('w1');
        return view;
      },
    });
    return seen;
  };

  beforeEach(async () => {
    key = undefined;
    passingClock = new TestClock();
    servers = await aFleetOfServers(
      ['w1', 'w2'],
      async (ofFleet) => {
        approving = await anApprovingServer(['require operation=claimSandbox'], { ofFleet });
        return approving.server;
      },
      passingClock,
    );
    for (const name of ['w1', 'w2', 'hub'])
      await serverOf(name).tenant.post('/sandboxpools', {
        ...{ name: 'p', templateName: 'default', replicas: 0 },
      });
    preferring('w1', 'w2');
  });
  afterEach(() => servers.stop());

  it('goes to any member with stock, after a refusal of each', async () => {
    await approved();
    expect(await claimed()).to.equal('POOL_EXHAUSTED');
    await stock('hub', 3);
    preferring('w2', 'w1', 'hub');
    expect(await claimed()).to.equal('POOL_EXHAUSTED');
    preferring('hub', 'w1');
    const first = await claimed();
    expect(first).to.match(/^hub\./);
    await stock('w1', 3);
    preferring('w1', 'w2');
    expect(await claimed()).to.equal(first);
    expect(made()).to.deep.equal([0, 0, 1]);
  });

  it('goes to another member if none was connected', async () => {
    await stock('w2', 3);
    preferring('w1');
    servers.cut('w1');
    await isCut();
    await approved();
    expect(await claimed()).to.equal('CLUSTER_UNAVAILABLE');
    preferring('w2');
    expect(await claimed()).to.match(/^w2\./);
    expect(made()).to.deep.equal([0, 1, 0]);
  });

  it('goes to this cluster after a refusal if the env has no other members any more', async () => {
    await approved();
    expect(await claimed()).to.equal('POOL_EXHAUSTED');
    await servers.manager.tenant.post('/sandboxpools', {
      ...{ name: 'e', templateName: 'default', replicas: 3 },
    });
    preferring();
    const first = await claimed();
    expect(first).to.match(/^hub\./);
    expect(await claimed()).to.equal(first);
    expect(made()).to.deep.equal([0, 0, 1]);
  });

  for (const each of [undefined, 'k']) {
    const under = each === undefined ? '' : ', under a key of its client';

    it(`stays if it may have taken effect, whatever happens to the env${under}`, async () => {
      key = each;
      for (const clusterId of ['w1', 'w2', 'hub']) await stock(clusterId, 3);
      const { asked } = losesAnswers();
      await approved();
      expect(await inTime(claimed())).to.equal('CLUSTER_UNAVAILABLE');
      for (const order of [['w2'], ['hub', 'w2'], []]) {
        preferring(...order);
        expect(await claimed()).to.equal('CLUSTER_UNAVAILABLE');
      }
      expect(made()).to.deep.equal([1, 0, 0]);
      await mend();
      expect(await claimed()).to.match(/^w1\./);
      expect(asked).to.deep.equal([false, true]);
    });

    it(`is refused if it may have taken effect in an unknown place${under}`, async () => {
      key = each;
      for (const clusterId of ['w1', 'w2']) await stock(clusterId, 3);
      losesAnswers();
      await approved();
      expect(await inTime(claimed())).to.equal('CLUSTER_UNAVAILABLE');
      Object.assign(servers.manager.operations.coordination, anEngine().coordination);
      preferring('w2');
      expect(await claimed()).to.equal('UNAVAILABLE');
      expect(made()).to.deep.equal([1, 0, 0]);
    });
  }

  for (const poolName of ['w1::p', 'e'])
    it(`is not returned if its key expired after it was sent to ${poolName}`, async () => {
      await stock('w1', 3);
      const { operations } = serverOf('w1');
      const { claimSandbox } = operations;
      const { tenant, operations: hub } = servers.manager;
      const key = [...hub.records.apiKeys.records.values()].find(({ user }) => user === 'ada')!;
      Object.assign(operations, {
        claimSandbox: async (...of: Parameters<typeof claimSandbox>) => {
          const view = await claimSandbox(...of);
          await tenant.delete(`/api-keys/${key.keyId}`);
          return view;
        },
      });
      await approved(poolName);
      expect((await claim(poolName)).json.errorCode).to.equal('CLUSTER_UNAVAILABLE');
      const uses = [...approving.records.records.values()].map(({ status, use }) => [
        status,
        use?.settled,
      ]);
      expect(uses).to.deep.equal([['consumed', false]]);
      expect(made()).to.deep.equal([1, 0, 0]);
    });

  for (const [poolName, clusterId] of [
    ['w1::p', 'w1'],
    ['e', 'w1'],
    ['p', 'hub'],
  ] as const)
    it(`is not returned while its claim from ${poolName} is in flight`, async () => {
      await stock(clusterId, 3);
      const { operations } = serverOf(clusterId);
      const { claimSandbox } = operations;
      const asked: unknown[] = [];
      Object.assign(operations, {
        claimSandbox: (...of: Parameters<typeof claimSandbox>) => {
          asked.push(of[1].opening?.mayBeDone);
          if (asked.length === 1) throw idempotencyInFlight();
          return claimSandbox(...of);
        },
      });
      await approved(poolName);
      const { status, json } = await claim(poolName);
      expect([status, json.errorCode]).to.deep.equal([409, 'IDEMPOTENCY_IN_FLIGHT']);
      expect((await claim(poolName)).status).to.equal(201);
      expect(asked).to.deep.equal([false, true]);
    });

  for (const poolName of ['w1::p', 'e'])
    it(`does not claim from ${poolName} again after its sandbox has ended, and is used up then`, async () => {
      await stock('w1', 3);
      const seen = losesAnswers();
      await approved(poolName);
      expect((await inTime(claim(poolName))).json.errorCode).to.equal('CLUSTER_UNAVAILABLE');
      seen.isOver = true;
      await mend();
      const { status, json } = await claim(poolName);
      expect([status, json.errorCode]).to.deep.equal([409, 'CONFLICT']);
      expect(json['error']).to.include('its result is gone');
      approving.clock.advance(10_000);
      approvalIdOf(await claim(poolName));
      expect([seen.asked, made()]).to.deep.equal([
        [false, true],
        [1, 0, 0],
      ]);
    });

  it('is repeated as possibly done if its answer was lost', async () => {
    await stock('w1', 3);
    const seen = losesAnswers();
    seen.isOver = true;
    await approved();
    const answered = claim();
    await mend();
    const { json } = await inTime(answered);
    // What is said of a first request that may still be on its way is not believed: it is unsure.
    expect(json.errorCode).to.equal('CLUSTER_UNAVAILABLE');
    expect([seen.asked, made()]).to.deep.equal([
      [false, true],
      [1, 0, 0],
    ]);
  });

  it("ignores a client's header in the name of the manager", async () => {
    await stock('w1', 3);
    const { operations } = serverOf('w1');
    const { claimSandbox } = operations;
    const asked: unknown[] = [];
    Object.assign(operations, {
      claimSandbox: (...of: Parameters<typeof claimSandbox>) => {
        asked.push([of[1].opening?.mayBeDone, of[1].waitMs]);
        return claimSandbox(...of);
      },
    });
    const headers = {
      'Idempotency-Key': 'k',
      'Sandpool-Fleet-Claim-Terms': '{"mayBeDone":true,"waitMs":9000}',
    };
    const post = (server = serverOf('w1'), poolName = 'p') =>
      server.tenant.post('/sandboxes', { poolName }, { headers });
    expect((await post()).status).to.equal(201);
    await approving.approve(approvalIdOf(await post(servers.manager, 'e')));
    expect((await post(servers.manager, 'e')).status).to.equal(201);
    expect(asked).to.deep.equal([
      [false, 0],
      [false, 0],
    ]);
  });
});
