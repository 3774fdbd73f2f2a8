import { expect } from 'chai';
import fc from 'fast-check';
import { Readable } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../../src/contracts/clock.ts';
import { Passing, type PassedRequest } from '../../src/fleet/routing/pass-on.ts';
import { errorAnswer } from '../../src/http/reply/error-table.ts';
import { EffectIsOver } from '../../src/model/approvals/approval-refusals.ts';
import { AnswerLost, clusterUnavailable } from '../../src/model/fleet/cluster-refusals.ts';
import type { InstanceId } from '../../src/model/identifiers.ts';
import { noIdleInstance } from '../../src/model/pools/exhausted-pool.ts';
import type { WayToCluster } from '../../src/fleet/replication/fleet-operations.ts';
import type { IdempotentRequest } from '../../src/actors/request/idempotent-request.ts';
import { presentSandbox } from '../../src/http/resources/sandboxes/presenter.ts';
import type { SandboxView } from '../../src/actors/views.ts';
import { NO_INSTANCES } from '../../src/model/pools/pool.ts';
import {
  anApprovingServer,
  approvalIdOf,
  type ApprovingServer,
} from '../http/an-approving-server.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { runs } from '../support/harness/runs.ts';
import { checkAsync } from './check.ts';

const CLUSTERS = ['hub', 'w1', 'w2'] as const;
type ClusterName = (typeof CLUSTERS)[number];

/** `late` and `lost` cut the link, `asked again` does not. */
const FATES = [
  ...(['none', 'lost', 'answer lost', 'asked again'] as const),
  ...(['late', 'killed', 'killed once done'] as const),
];
type Fate = (typeof FATES)[number];

class Killed extends Error {}

/** Carries a claim out once under its key, and keeps no answer. */
class Cluster {
  stock = 0;
  isLinked = true;
  made = 0;
  readonly #live = new Map<string, string>();
  readonly #ended = new Set<string>();

  /** Undefined without a free sandbox. */
  claim(key: string, mayBeDone: boolean): string | undefined {
    const earlier = this.#live.get(key);
    if (earlier !== undefined) return earlier;
    if (mayBeDone && this.#ended.has(key)) throw new EffectIsOver();
    if (this.stock === 0) return undefined;
    this.stock -= 1;
    this.made += 1;
    const id = `0190d4a5-7b1e-7c3a-9f00-00000000000${this.made % 10}`;
    this.#live.set(key, id);
    return id;
  }

  end(): void {
    for (const key of this.#live.keys()) this.#ended.add(key);
    this.#live.clear();
  }
}

/** Jumps to each requested moment, so nothing really waits. */
class HurriedClock implements Clock {
  #now = 0;
  now = (): number => this.#now;
  at = (moment: number, due: () => void): (() => void) => {
    const turn = setImmediate(() => {
      this.#now = Math.max(this.#now, moment);
      due();
    });
    return () => clearImmediate(turn);
  };
}

const answerOf = (status: number, body: object, headers: object = {}): IncomingMessage =>
  Object.assign(Readable.from([Buffer.from(JSON.stringify(body))]), {
    statusCode: status,
    headers: { 'content-type': 'application/json', ...headers },
  }) as unknown as IncomingMessage;

const refusalOf = (error: unknown): IncomingMessage => {
  const { status, headers, body } = errorAnswer(error, '');
  const retryAfter = headers['Retry-After'];
  return answerOf(status, body, retryAfter === undefined ? {} : { 'retry-after': retryAfter });
};

type Step =
  | {
      readonly kind: 'use';
      readonly by: readonly (0 | 1)[];
      readonly fates: readonly Fate[];
      readonly ends: boolean;
    }
  | { readonly kind: 'stock'; readonly cluster: ClusterName; readonly stock: number }
  | { readonly kind: 'link'; readonly cluster: ClusterName; readonly isLinked: boolean }
  | { readonly kind: 'members'; readonly clusters: readonly ClusterName[] }
  | { readonly kind: 'arrive' | 'forget' };

class World {
  clusters = { hub: new Cluster(), w1: new Cluster(), w2: new Cluster() };
  isUnsure = false;
  readonly #operations = anEngine();
  readonly #records = new MemoryApprovals();
  readonly #clock = new TestClock();
  #late: (() => void)[] = [];
  #claims = 0;
  #isKeyed = false;
  #view: SandboxView | undefined;
  #members: readonly ClusterName[] = ['w1', 'w2', 'hub'];
  #fates: Fate[] = [];
  #replicas: readonly ApprovingServer[] = [];
  #clients: readonly HttpClient[] = [];

  /** Call only once. */
  async start(): Promise<void> {
    const operations = this.#operations;
    operations.claimPlaces = (_caller, name) =>
      this.#members.every((each) => each === 'hub') || name !== 'e'
        ? []
        : this.#members.map((clusterId) => ({
            ...{ clusterId, poolName: 'p' },
            took: () => undefined,
          }));
    const { claimSandbox } = operations;
    Object.assign(operations, {
      claimedBefore: async (_caller: unknown, opening: IdempotentRequest) => {
        await opening.open();
        return undefined;
      },
      claimSandbox: async (...[caller, request]: Parameters<typeof claimSandbox>) => {
        await request.opening?.open();
        const { mark, mayBeDone } = request.opening!;
        return await this.#claimHere(mark.key, mayBeDone, () =>
          claimSandbox(caller, { poolName: 'p' }),
        );
      },
    });
    const passing = Object.assign(new Passing(new HurriedClock()), {
      pass: (passed: PassedRequest) => this.#pass(passed),
    });
    const wayTo = (clusterId: string): WayToCluster => {
      if (!this.clusters[clusterId as ClusterName].isLinked)
        throw clusterUnavailable(clusterId, 'is not connected; try again');
      return { clusterId, linkId: 'l' } as WayToCluster;
    };
    const known = { listOthers: () => [], listShown: () => [] };
    const fleet = { fleet: { clusterId: 'hub', ...known, wayTo }, passing };
    const replica = (): Promise<ApprovingServer> =>
      anApprovingServer(['require operation=claimSandbox'], {
        ...{ operations, records: this.#records, clock: this.#clock },
        ofFleet: { clusterId: 'hub', fleet },
      });
    this.#replicas = [await replica(), await replica()];
    const key = await operations.key('blue', 'ada');
    this.#clients = this.#replicas.map(({ server }) => new HttpClient(server.port, key));
    await this.#clients[0]!.post('/sandboxpools', {
      ...{ name: 'p', templateName: 'default', replicas: 1_000 },
    });
    await operations.settled();
    this.#view = await claimSandbox(operations.authenticate(key), { poolName: 'p' });
  }

  /** With or without a client's key. */
  async begin(stocks: readonly number[], isKeyed: boolean): Promise<void> {
    this.#isKeyed = isKeyed;
    this.clusters = { hub: new Cluster(), w1: new Cluster(), w2: new Cluster() };
    for (const [at, stock] of stocks.entries()) this.clusters[CLUSTERS[at]!].stock = stock;
    this.isUnsure = false;
    this.#late = [];
    this.#members = ['w1', 'w2', 'hub'];
    this.#claims += 1;
    const { status } = await this.#replicas[0]!.approve(approvalIdOf(await this.#claim(0)));
    expect(status).to.equal(200);
  }

  async take(step: Step): Promise<void> {
    this.#clock.advance(1);
    if (step.kind === 'use') {
      this.#fates = [...step.fates];
      await Promise.all(step.by.map((replica) => this.use(replica)));
      this.#fates = [];
      if (step.ends) this.#end();
    } else if (step.kind === 'stock') this.clusters[step.cluster].stock = step.stock;
    else if (step.kind === 'link' && step.cluster !== 'hub')
      this.clusters[step.cluster].isLinked = step.isLinked;
    else if (step.kind === 'members') this.#members = step.clusters;
    else if (step.kind === 'arrive') for (const come of this.#late.splice(0)) come();
    else if (step.kind === 'forget') this.#forget();
  }

  /** Requests expire in seconds, far sooner than sandboxes. */
  #end(): void {
    this.#late = [];
    for (const each of Object.values(this.clusters)) each.end();
  }

  /** The store lost its data. */
  #forget(): void {
    Object.assign(this.#operations.coordination, anEngine().coordination);
    this.isUnsure = true;
  }

  async use(replica: 0 | 1): Promise<number> {
    return (await this.#claim(replica)).status;
  }

  #claim(replica: 0 | 1): Promise<HttpAnswer> {
    const claim = String(this.#claims);
    const headers: Readonly<Record<string, string>> = this.#isKeyed
      ? { 'Idempotency-Key': claim }
      : {};
    const body = { poolName: 'e', metadata: { claim } };
    return this.#clients[replica]!.post('/sandboxes', body, { headers });
  }

  get made(): number {
    return Object.values(this.clusters).reduce((sum, { made }) => sum + made, 0);
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    await Promise.all(this.#replicas.map((each) => each.stop()));
  }

  #fate(): Fate {
    const fate = this.#fates.shift() ?? 'none';
    if (fate !== 'none') this.isUnsure = true;
    return fate;
  }

  async #claimHere(
    key: string,
    mayBeDone: boolean,
    made: () => Promise<SandboxView>,
  ): Promise<SandboxView> {
    const fate = this.#fate();
    if (fate === 'killed' || fate === 'lost' || fate === 'late') throw new Killed();
    const id = this.clusters.hub.claim(key, mayBeDone);
    if (fate !== 'none') throw new Killed();
    if (id === undefined) throw noIdleInstance({ name: 'p' }, NO_INSTANCES);
    return { ...(await made()), id: id as InstanceId };
  }

  async #pass({ way, key, claimTerms = '{}' }: PassedRequest): Promise<IncomingMessage> {
    const { clusterId } = way;
    const { mayBeDone = false } = JSON.parse(claimTerms) as { readonly mayBeDone?: boolean };
    const cluster = this.clusters[clusterId as ClusterName];
    const fate = this.#fate();
    if (fate === 'killed') throw new Killed();
    if (fate === 'late' || fate === 'lost' || fate === 'answer lost') cluster.isLinked = false;
    if (fate === 'late')
      this.#late.push(() => {
        try {
          cluster.claim(key ?? '', mayBeDone);
        } catch (error) {
          if (!(error instanceof EffectIsOver)) throw error; // its answer reaches nobody
        }
      });
    if (fate === 'late' || fate === 'lost') throw new AnswerLost(clusterId);
    let answer: IncomingMessage;
    try {
      const id = cluster.claim(key ?? '', mayBeDone) as InstanceId | undefined;
      answer = id
        ? answerOf(201, { sandbox: presentSandbox({ ...this.#view!, id }) })
        : refusalOf(noIdleInstance({ name: 'p' }, NO_INSTANCES));
    } catch (error) {
      answer = refusalOf(error);
    }
    if (fate === 'killed once done') throw new Killed();
    if (fate === 'answer lost' || fate === 'asked again') throw new AnswerLost(clusterId);
    return answer;
  }
}

const cluster = fc.constantFrom(...CLUSTERS);
const fate = fc.oneof(
  { arbitrary: fc.constant<Fate>('none'), weight: 1 },
  { arbitrary: fc.constantFrom(...FATES), weight: 2 },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant('use' as const),
      by: fc.constantFrom<readonly (0 | 1)[]>([0], [1], [0, 1]),
      fates: fc.array(fate, { maxLength: 3 }),
      ends: fc.boolean(),
    }),
    weight: 4,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant('stock' as const),
      cluster,
      stock: fc.nat({ max: 2 }),
    }),
    weight: 2,
  },
  fc.record({ kind: fc.constant('link' as const), cluster, isLinked: fc.boolean() }),
  fc.record({
    kind: fc.constant('members' as const),
    clusters: fc.shuffledSubarray([...CLUSTERS]),
  }),
  fc.record({ kind: fc.constant('arrive' as const) }),
  fc.record({ kind: fc.constant('forget' as const) }),
);

describe('an approved claim over the clusters of a manager with two replicas', () => {
  const world = new World();
  before(() => world.start());
  after(() => world.stop());

  it('creates at most one sandbox, and repeats only if there is certainly none', async () => {
    await checkAsync(
      fc.asyncProperty(
        fc.array(fc.nat({ max: 3 }), { minLength: 3, maxLength: 3 }),
        fc.array(step, { minLength: 1, maxLength: 9 }),
        cluster,
        fc.constantFrom(0 as const, 1 as const),
        fc.boolean(),
        async (stocks, steps, withStock, last, isKeyed) => {
          await world.begin(stocks, isKeyed);
          for (const each of steps) {
            await world.take(each);
            expect(world.made).to.be.at.most(1);
          }
          const { isUnsure, made } = world;
          await world.take({ kind: 'arrive' });
          for (const each of CLUSTERS)
            await world.take({ kind: 'link', cluster: each, isLinked: true });
          await world.take({ kind: 'stock', cluster: withStock, stock: 1 });
          const others = CLUSTERS.filter((each) => each !== withStock);
          await world.take({ kind: 'members', clusters: [withStock, ...others] });
          const status = await world.use(last);
          expect(world.made).to.be.at.most(1);
          if (!isUnsure || (made === 0 && status === 201)) {
            expect(status).to.equal(201);
            expect(world.made).to.equal(1);
          }
        },
      ),
      { numRuns: runs(60) },
    );
  });
});
