import { expect } from 'chai';
import { groupSpecOf } from '../../src/actors/env/group-spec.ts';
import { bufferOf } from '../../src/machines/autoscaling/modes.ts';
import { samePending, type GroupMemory } from '../../src/machines/autoscaling/memory.ts';
import type { AutoscalingGroup } from '../../src/model/envs/autoscaling-group.ts';
import type { EnvRecord } from '../../src/model/envs/env.ts';
import type { PoolRecord } from '../../src/model/pools/pool.ts';
import type { InstanceFact } from '../../src/model/sandbox.ts';
import type { ScalingDecision } from '../../src/model/envs/scaling-decision.ts';
import type { envStores } from '../support/harness/env-replicas.ts';

type Stores = Pick<Awaited<ReturnType<typeof envStores>>, 'envs' | 'pools' | 'driver' | 'clock'>;

/** The idle count less removals since, and the size that this justified. */
interface Look {
  readonly at: number;
  idle: number;
  desired: number;
  spokeFor: number;
}

/** Known from outside. */
interface Book {
  readonly looks: Look[];
  grewAt: number;
  coolingFrom: number;
  readonly saturated: Map<string, { readonly until: number; readonly notedAt: number }>;
}

const MOST_LOOKS = 500;
/** Until a leader knows what another one saw. */
const LOOK_MS = 5_000;
/** An owner's change takes effect by then. */
const EDIT_MS = 10_000;

/**
 * Sees every replica's writes and all running instances, and checks them. `check` throws errors,
 * since a writer would take them for failed writes.
 */
export class SizingReferee {
  /** Increases with every event. */
  seen = 0;
  /** Starts failed: members and cooldowns may be given up. */
  troubled = false;
  /** Decisions may follow older events. */
  late = false;
  decisions = 0;
  applied = 0;
  readonly #stores: Stores;
  readonly #facts = new Map<string, InstanceFact>();
  readonly #pools = new Map<string, PoolRecord>();
  readonly #ended = new Set<string>();
  readonly #asked = new Map<string, number>();
  readonly #waits = new Map<string, { until: number }[]>();
  readonly #books = new Map<string, Book>();
  readonly #wrong: string[] = [];
  #env: EnvRecord | undefined;
  #editedAt = Number.NEGATIVE_INFINITY;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async start(): Promise<void> {
    await this.#stores.driver.view().watch((fact) => {
      this.#learn(fact);
    });
    await this.#stores.pools.watch(({ kind, record }) => {
      this.#pool(kind, record);
    });
    await this.#stores.envs.watch(({ kind, record }) => {
      this.#written(kind === 'put' ? record : undefined);
    });
  }

  running(): readonly string[] {
    return this.#ids(isRunning);
  }

  starting(): readonly string[] {
    return this.#ids(
      ({ record, vitals }) =>
        record !== undefined && vitals.kind === 'starting' && vitals.hindrance === undefined,
    );
  }

  idle(): readonly string[] {
    return this.#ids(isIdle);
  }

  get env(): EnvRecord | undefined {
    return this.#env;
  }

  pool(member: string): PoolRecord | undefined {
    return [...this.#pools.values()].find(({ name, env }) => name === member && env !== undefined);
  }

  /** The instance ends by itself. */
  ends(id: string): void {
    this.#ended.add(id);
  }

  edited(): void {
    this.#editedAt = this.#now;
  }

  /** Set by the member's owner. */
  asked(member: string, replicas: number): void {
    this.#asked.set(member, replicas);
  }

  /** Returns a function that ends the wait. */
  waits(member: string): () => void {
    const wait = { until: Number.POSITIVE_INFINITY };
    this.#waits.set(member, [...(this.#waits.get(member) ?? []), wait]);
    return () => {
      wait.until = this.#now;
    };
  }

  check(): void {
    if (this.#wrong.length > 0) expect.fail(this.#wrong.join('\n'));
  }

  /** What every count must agree with. */
  countsOf(poolUid: string): { readonly running: number; readonly idle: number } {
    const own = [...this.#facts.values()].filter(({ record }) => record?.poolUid === poolUid);
    return { running: own.filter(isRunning).length, idle: own.filter(isIdle).length };
  }

  /** Call before time passes. */
  sample(ms: number): void {
    for (const group of this.#env?.groups ?? []) {
      const { looks } = this.#bookOf(group.name);
      looks.push({
        at: this.#now + ms,
        idle: this.#idleIn(group),
        desired: this.#desiredIn(group),
        spokeFor: 0,
      });
      looks.splice(0, looks.length - MOST_LOOKS);
    }
  }

  /** A second look saw effects of the first. */
  sampled(): void {
    for (const group of this.#env?.groups ?? []) {
      const look = this.#bookOf(group.name).looks.at(-1);
      if (look?.at !== this.#now) continue;
      look.idle = Math.max(look.idle, this.#idleIn(group));
      const least = this.#leastIdle(group, look.at);
      look.spokeFor = Math.min(look.desired, this.#desiredIn(group)) - (least ?? 0);
    }
  }

  get #now(): number {
    return this.#stores.clock.now();
  }

  #ids(is: (fact: InstanceFact) => boolean): readonly string[] {
    return [...this.#facts.values()].filter(is).map(({ id }) => id);
  }

  #blame(what: string, about: unknown): void {
    this.#wrong.push(`${what}: ${JSON.stringify(about)}`);
  }

  #learn(fact: InstanceFact): void {
    this.seen += 1;
    const before = this.#facts.get(fact.id);
    if (before && isRunning(before) && !isRunning(fact) && !this.#ended.has(fact.id))
      this.#blame('a running one was taken away', fact);
    if (fact.record) this.#facts.set(fact.id, fact);
    else this.#facts.delete(fact.id);
    if (fact.vitals.kind === 'gone') this.#facts.delete(fact.id);
  }

  #pool(kind: 'put' | 'gone', record: PoolRecord): void {
    this.seen += 1;
    const before = this.#pools.get(record.uid);
    if (kind === 'gone') this.#pools.delete(record.uid);
    else this.#pools.set(record.uid, record);
    const { decided } = record;
    if (kind === 'gone' || !decided) return;
    if (decided.id === before?.decided?.id) {
      if (record.replicas !== before.replicas && record.replicas !== this.#asked.get(record.name))
        this.#blame('applied twice', { record, before });
      return;
    }
    this.applied += 1;
    if (decided.id <= (before?.decided?.id ?? 0))
      this.#blame('an earlier decision after a later one', { record, before });
    const shrunk = before !== undefined && record.replicas < before.replicas;
    if (
      shrunk &&
      this.#causeOf(decided.id) !== 'limits' &&
      !this.late &&
      record.replicas < this.countsOf(record.uid).running
    )
      this.#blame('below what runs', record);
  }

  #causeOf(id: number): ScalingDecision['cause'] | undefined {
    return Object.values(this.#env?.scaling ?? {})
      .map((memory) => (memory as GroupMemory).pending)
      .find((pending) => pending?.id === id)?.cause; // the group machine's own
  }

  #written(env: EnvRecord | undefined): void {
    this.seen += 1;
    const before = this.#env;
    this.#env = env;
    for (const name of this.#books.keys())
      if (!env?.groups.some((group) => group.name === name)) this.#books.delete(name);
    for (const group of env?.groups ?? []) {
      if (!env) continue;
      const { memory } = groupSpecOf(env, group);
      const earlier = before?.groups.some(({ name }) => name === group.name)
        ? groupSpecOf(before, group).memory
        : undefined;
      if (memory.last < (earlier?.last ?? 0))
        this.#blame('a decision was forgotten', { memory, earlier });
      if (
        earlier?.pending &&
        memory.pending &&
        memory.last === earlier.last &&
        !samePending(memory, earlier)
      )
        this.#blame('another decision under the same id', { memory, earlier });
      if (memory.last > (earlier?.last ?? 0)) this.#decision(env, group, memory);
      const { saturated } = this.#bookOf(group.name);
      for (const [member, { until }] of Object.entries(memory.saturated))
        if (until > (saturated.get(member)?.until ?? 0))
          saturated.set(member, { until, notedAt: this.#now });
    }
  }

  #decision(env: EnvRecord, group: AutoscalingGroup, memory: GroupMemory): void {
    const decision = memory.pending;
    this.decisions += 1;
    if (decision?.id !== memory.last) return this.#blame('a decision that is not saved', memory);
    const book = this.#bookOf(group.name);
    const up = decision.changes.filter(({ from, to }) => to > from);
    for (const { member, to } of up) {
      const rule = groupSpecOf(env, group).rules.find(({ name }) => name === member);
      if (!rule || to > Math.max(rule.minReplicas, rule.maxReplicas))
        this.#blame("above the member's most", { decision, rule });
      const saturation = book.saturated.get(member);
      if (
        saturation &&
        decision.at < saturation.until &&
        decision.at - saturation.notedAt > LOOK_MS
      )
        this.#blame('a saturated member grew', { decision, saturation });
    }
    if (up.length > 0) this.#growth(env, group, decision, book);
    if (decision.cause === 'surplus') this.#shrinkage(group, decision, book);
    if (up.length > 0) book.grewAt = decision.at;
    if (up.length > 0 && decision.cause !== 'limits') book.coolingFrom = decision.at;
  }

  #growth(env: EnvRecord, group: AutoscalingGroup, decision: ScalingDecision, book: Book): void {
    const { changes } = decision;
    const { mode, cooldownSeconds } = group.scaleUpPolicy;
    const steady = !this.late && this.#now - this.#editedAt > EDIT_MS;
    const { rules } = groupSpecOf(env, group);
    const most = Math.max(
      group.maxReplicas,
      sum(rules, ({ minReplicas }) => minReplicas),
    );
    const total = this.#desiredIn(group) + sum(changes, ({ from, to }) => to - from);
    if (steady && total > most) this.#blame("above the group's most", { decision, total, most });
    if (decision.cause !== 'demand') return;
    const least = sum(rules, ({ minReplicas }) => minReplicas) + group.minReplicas;
    if (!this.late && !this.troubled && this.#surplusOf(group, decision) > least)
      this.#blame('grown for what is only starting', { decision, least });
    const added = sum(changes, ({ from, to }) => Math.max(0, to - from));
    if (
      steady &&
      !this.troubled &&
      mode !== 'Aggressive' &&
      added > this.#waitingIn(group, decision.at) &&
      decision.at - book.coolingFrom < cooldownSeconds * 1_000
    )
      this.#blame('grown in the cooldown', { decision, book });
  }

  /** Also those of the last look. */
  #waitingIn(group: AutoscalingGroup, at: number): number {
    return sum(
      this.#poolsIn(group),
      ({ name }) =>
        (this.#waits.get(name) ?? []).filter(({ until }) => until >= at - LOOK_MS).length,
    );
  }

  /**
   * Growth beyond running instances, requests and the buffer, or beyond a member's unanswered
   * claims.
   */
  #surplusOf(group: AutoscalingGroup, { seen, changes }: ScalingDecision): number {
    const pools = this.#poolsIn(group).map(({ name, uid, replicas }) => ({
      ...this.countsOf(uid),
      replicas,
      to: changes.find(({ member }) => member === name)?.to ?? replicas,
    }));
    const running = Math.max(
      seen.running,
      sum(pools, (pool) => pool.running),
    ); // some may have ended since
    const inAll =
      sum(pools, ({ to }) => to) -
      running -
      seen.pending -
      bufferOf(group.scaleUpPolicy.mode, running);
    const ended = running - sum(pools, (pool) => pool.running);
    return Math.min(
      inAll,
      sum(pools, (pool) =>
        Math.max(0, pool.to - Math.max(pool.replicas, pool.running + ended + seen.pending)),
      ),
    );
  }

  #shrinkage(group: AutoscalingGroup, decision: ScalingDecision, book: Book): void {
    const { protectionWindowSeconds, stabilizationSeconds } = group.scaleDownPolicy;
    const taken = sum(decision.changes, ({ from, to }) => from - to);
    if (decision.at - book.grewAt < protectionWindowSeconds * 1_000)
      this.#blame('shrunk so soon after a scale-up', { decision, grewAt: book.grewAt });
    const least = this.#leastIdle(group, decision.at);
    if (least === undefined) this.#blame('shrunk before its window was over', decision);
    else if (least < taken)
      this.#blame('shrunk by what was needed', { decision, least, looks: book.looks.slice(-20) });
    const spokenFor = Math.max(
      ...book.looks
        .filter(({ at }) => at < decision.at && at > decision.at - stabilizationSeconds * 1_000)
        .map(({ spokeFor }) => spokeFor),
      0,
    );
    if (decision.seen.desired - taken < spokenFor)
      this.#blame('shrunk below what the stabilization window speaks for', {
        decision,
        spokenFor,
        looks: book.looks.slice(-20),
      });
    for (const look of book.looks) look.idle -= taken;
  }

  /** Lowest idle count in the idle timeout; undefined if not known for that long. */
  #leastIdle(group: AutoscalingGroup, at: number): number | undefined {
    const { looks } = this.#bookOf(group.name);
    const since = at - group.scaleDownPolicy.idleTimeoutSeconds * 1_000;
    const first = looks[0];
    if (!first || first.at > since) return undefined;
    return Math.max(
      0,
      Math.min(...looks.filter((look) => look.at > since && look.at <= at).map(({ idle }) => idle)),
    );
  }

  #bookOf(group: string): Book {
    const book: Book = this.#books.get(group) ?? {
      looks: [],
      grewAt: Number.NEGATIVE_INFINITY,
      coolingFrom: Number.NEGATIVE_INFINITY,
      saturated: new Map(),
    };
    this.#books.set(group, book);
    return book;
  }

  #poolsIn({ name }: AutoscalingGroup): readonly PoolRecord[] {
    const names =
      this.#env?.members
        .filter(({ config, deleting }) => config.scalingGroup === name && deleting === false)
        .map((member) => member.name) ?? [];
    return [...this.#pools.values()].filter(
      (pool) =>
        pool.env?.uid === this.#env?.uid && names.includes(pool.name) && pool.deleting === false,
    );
  }

  #idleIn(group: AutoscalingGroup): number {
    return sum(this.#poolsIn(group), ({ uid }) => this.countsOf(uid).idle);
  }

  #desiredIn(group: AutoscalingGroup): number {
    return sum(this.#poolsIn(group), ({ replicas }) => replicas);
  }
}

const isRunning = ({ record, vitals }: InstanceFact): boolean =>
  record?.state === 'claimed' && vitals.kind !== 'gone';

const isIdle = ({ record, vitals }: InstanceFact): boolean =>
  record?.state === 'idle' && vitals.kind === 'available';

const sum = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((total, one) => total + of(one), 0);
