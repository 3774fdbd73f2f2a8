import { expect } from 'chai';
import type { GroupChange } from '../../src/model/envs/autoscaling-group.ts';
import { OutcomeUnknown, RecordConflict } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { Caller } from '../../src/model/tenant.ts';
import { presentEnv } from '../../src/http/resources/envs/presenter.ts';
import { alice } from '../support/harness/a-supervisor.ts';
import { anEnvReplica, envStores, type EnvReplica } from '../support/harness/env-replicas.ts';
import type { WriteFault } from '../support/fakes/memory-instance-records.ts';
import { SizingReferee } from './sizing-referee.ts';

export type SizingStep =
  | {
      readonly do: 'claim';
      readonly by: number;
      readonly to: number;
      readonly principal: number;
      readonly waitMs: number;
    }
  | { readonly do: 'end'; readonly pick: number }
  | { readonly do: 'launches fail'; readonly count: number }
  | { readonly do: 'places'; readonly free: boolean }
  | { readonly do: 'group'; readonly by: number; readonly to: number; readonly change: GroupChange }
  | {
      readonly do: 'member';
      readonly by: number;
      readonly to: number;
      readonly least: number;
      readonly most: number;
    }
  | { readonly do: 'resize'; readonly by: number; readonly to: number; readonly replicas: number }
  | { readonly do: 'drop' | 'add'; readonly by: number; readonly to: number }
  | {
      readonly do: 'fault';
      readonly by: number;
      readonly of: 'pools' | 'envs';
      readonly fault: WriteFault;
    }
  | { readonly do: 'lead' | 'follow' | 'crash' | 'lag' | 'catch up'; readonly by: number }
  | { readonly do: 'pass'; readonly looks: number; readonly ms: number };

const MEMBERS = ['a', 'b'];
const PRINCIPALS = ['k1', 'k2', 'k3'];
const MOST_IN_FLIGHT = 12;

/**
 * Each replica may believe to lead, see events late, fail to write or not learn the outcome, and
 * die at any step. Its successor starts from the records.
 */
export class SizingWorld {
  readonly referee: SizingReferee;
  readonly #stores: Awaited<ReturnType<typeof envStores>>;
  readonly #replicas: EnvReplica[];
  readonly #callers = [new AbortController(), new AbortController()];
  #inFlight = 0;
  #free = true;
  #unexpected: Error | undefined;

  private constructor(stores: Awaited<ReturnType<typeof envStores>>, replicas: EnvReplica[]) {
    [this.#stores, this.#replicas, this.referee] = [stores, replicas, new SizingReferee(stores)];
  }

  /** `leaders`: replicas that believe to lead. */
  static async make({
    shared,
    leaders,
  }: {
    readonly shared: boolean;
    readonly leaders: number;
  }): Promise<SizingWorld> {
    const stores = await envStores({ pool: { name: 'aside', replicas: 0 }, replicas: 40 });
    const world = new SizingWorld(stores, [await anEnvReplica(stores), await anEnvReplica(stores)]);
    await world.referee.start();
    const { createEnv, addMember } = world.#at(0).parts.operations;
    await createEnv(alice, {
      name: 'e',
      templateRef: { name: 't' },
      mode: 'WarmPool',
      overrides: { defaultStartupTimeout: '5m', defaultIdleTimeout: '0' },
      labels: {},
      annotations: {},
    });
    for (const name of MEMBERS)
      await addMember(alice, 'e', {
        name,
        replicas: 1,
        config: { maxReplicas: 12, ...(shared && name === 'b' ? { scalingGroup: 'a' } : {}) },
      });
    for (let by = 0; by < leaders; by++) world.#at(by).lead();
    await world.settle();
    return world;
  }

  async take(step: SizingStep): Promise<void> {
    const { truth } = this.#stores;
    switch (step.do) {
      case 'claim':
        this.#claim(step);
        break;
      case 'end': {
        const running = this.referee.running();
        const id = running[step.pick % Math.max(1, running.length)];
        if (id !== undefined) this.referee.ends(id);
        if (id !== undefined) truth.end(id);
        break;
      }
      case 'launches fail':
        for (let count = 0; count < step.count; count++)
          truth.failNext('launch', new Error('told to fail'));
        this.referee.troubled = true;
        break;
      case 'places':
        this.#places(step.free);
        break;
      case 'fault':
        this.#at(step.by)[step.of].faults.push(step.fault);
        break;
      case 'lead':
        this.#at(step.by).catchUp();
        this.#at(step.by).lead();
        break; // as the barrier of a new leader has it
      case 'follow':
        this.#at(step.by).follow();
        break;
      case 'lag':
        this.#at(step.by).lag();
        this.referee.late = true;
        break;
      case 'catch up':
        this.#at(step.by).catchUp();
        break;
      case 'crash':
        await this.#crash(step.by);
        break;
      case 'pass':
        for (let look = 0; look < step.looks; look++) await this.pass(step.ms);
        return;
      default:
        this.#edit(step);
    }
    await this.settle();
  }

  /** Time passes, with its effects. */
  async pass(ms: number): Promise<void> {
    this.referee.sample(ms);
    this.#stores.clock.advance(ms);
    await this.settle();
    this.referee.sampled();
  }

  /** Waiting claims must be served if there is room. Without claims, all counts must then match. */
  async calmDown(to: number): Promise<void> {
    await this.#heal();
    const { truth, clock } = this.#stores;
    const name = memberOf(to);
    for (const id of this.referee.idle()) truth.end(id);
    truth.startsByItself = true;
    await this.settle();
    const before = this.referee.running().length;
    const asked = clock.now();
    this.#claim({ do: 'claim', by: 0, to, principal: 0, waitMs: 0 });
    while (this.referee.running().length === before) {
      if (clock.now() - asked > 300_000)
        expect.fail(
          `claims at ${name} are refused, and nothing comes: ${JSON.stringify(this.#at(0).parts.groups.group(this.referee.env?.uid ?? '', 'a'))}`,
        );
      await this.pass(5_000);
      this.#claim({ do: 'claim', by: 0, to, principal: 0, waitMs: 0 });
      await this.settle();
    }
    for (let turn = 0; turn < 3; turn++) await this.pass(5_000);
    await this.#recount();
  }

  async #heal(): Promise<void> {
    await this.#crash(0);
    await this.#crash(1);
    this.#stores.truth.heal('launch');
    this.#places(true);
    this.#at(0).lead();
    await this.pass(60_000);
    for (const [to, name] of MEMBERS.entries())
      if (!this.referee.env?.members.some((member) => member.name === name))
        this.#edit({ do: 'add', by: 0, to });
    await this.settle();
    for (const to of MEMBERS.keys()) {
      this.#edit({ do: 'member', by: 0, to, least: 0, most: 18 });
      await this.settle();
      this.#edit({
        do: 'group',
        by: 0,
        to,
        change: { enabled: true, minReplicas: 0, maxReplicas: 36 },
      });
      await this.settle();
    }
  }

  async #recount(): Promise<void> {
    for (const replica of this.#replicas) {
      const view = await replica.parts.operations.getEnv(alice, 'e');
      for (const { name, idle, running, desired } of view.observed) {
        const pool = this.referee.pool(name);
        expect({ name, idle, running, desired }, 'a recount').to.deep.equal({
          name,
          ...(pool
            ? { ...this.referee.countsOf(pool.uid), desired: pool.replicas }
            : { idle: 0, running: 0, desired: 1 }),
        });
      }
      const { status } = presentEnv(view);
      const sumOf = (of: 'idle' | 'running' | 'desired'): number =>
        view.observed.reduce((sum, member) => sum + member[of], 0);
      expect(status).to.include({
        memberCount: view.observed.length,
        idleReplicas: sumOf('idle'),
        runningReplicas: sumOf('running'),
        desiredReplicas: sumOf('desired'),
      });
    }
  }

  /** Continues pending work without the clock. */
  async settle(): Promise<void> {
    for (let turn = 0, quiet = 0, before = -1; turn < 400 && quiet < 6; turn++) {
      if (!this.#free) for (const id of this.referee.starting()) this.#stores.truth.findNoPlace(id);
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
      quiet = before === this.referee.seen ? quiet + 1 : 0;
      before = this.referee.seen;
    }
    if (this.#unexpected) throw this.#unexpected;
    this.referee.check();
  }

  #at(by: number): EnvReplica {
    return this.#replicas[by % 2]!;
  } // there are two

  /** Its waiting claims end first; in Redis their places would lapse. */
  async #crash(by: number): Promise<void> {
    this.#callers[by % 2]?.abort(new Refusal('UNAVAILABLE', 'hung up'));
    this.#callers[by % 2] = new AbortController();
    await this.settle();
    this.#at(by).die();
    this.#replicas[by % 2] = await anEnvReplica(this.#stores);
  }

  #places(free: boolean): void {
    const { truth } = this.#stores;
    if (!free) this.referee.troubled = true;
    this.#free = truth.startsByItself = free;
    if (free) for (const id of this.referee.starting()) truth.becomeAvailable(id);
  }

  #claim({ by, to, principal, waitMs }: Extract<SizingStep, { do: 'claim' }>): void {
    if (this.#inFlight >= MOST_IN_FLIGHT) return;
    this.#inFlight += 1;
    // in range
    const caller: Caller = { ...alice, keyId: PRINCIPALS[principal % PRINCIPALS.length]! };
    const endsWaiting = waitMs > 0 ? this.referee.waits(memberOf(to)) : undefined;
    this.#run(
      this.#at(by)
        .claim(
          caller,
          { poolName: memberOf(to), waitMs: waitMs > 0 ? waitMs : undefined },
          this.#callers[by % 2]?.signal,
        )
        .finally(() => {
          this.#inFlight -= 1;
          endsWaiting?.();
        }),
    );
  }

  #edit(step: Extract<SizingStep, { do: 'group' | 'member' | 'resize' | 'drop' | 'add' }>): void {
    const { updateGroup, updateMember, deleteMember, addMember } = this.#at(step.by).parts
      .operations;
    const name = memberOf(step.to);
    this.referee.edited();
    switch (step.do) {
      case 'group':
        return this.#run(updateGroup(alice, { env: 'e', group: name }, step.change));
      case 'member':
        return this.#run(
          updateMember(
            alice,
            { env: 'e', member: name },
            {
              config: { minReplicas: step.least, maxReplicas: Math.max(step.least, step.most) },
            },
          ),
        );
      case 'resize':
        this.referee.asked(name, step.replicas);
        return this.#run(
          updateMember(alice, { env: 'e', member: name }, { replicas: step.replicas, config: {} }),
        );
      case 'drop':
        return this.#run(deleteMember(alice, { env: 'e', member: name }, { force: false }));
      case 'add':
        return this.#run(addMember(alice, 'e', { name, replicas: 1, config: { maxReplicas: 12 } }));
    }
  }

  /** Refusals reach the caller; a dead replica never answers. */
  #run(work: Promise<unknown>): void {
    work.catch((error: unknown) => {
      if (
        !(
          error instanceof Refusal ||
          error instanceof OutcomeUnknown ||
          error instanceof RecordConflict
        )
      )
        this.#unexpected ??= new Error('not a refusal', { cause: error });
    });
  }
}

const memberOf = (to: number): string => MEMBERS[to % MEMBERS.length]!; // in range
