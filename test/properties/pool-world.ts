import { expect } from 'chai';
import type { PoolPolicy } from '../../src/machines/pool/arithmetic.ts';
import { mayRenew, replaceableOf, surplusOf } from '../../src/machines/pool/decisions.ts';
import type { PoolIntent } from '../../src/machines/pool/events.ts';
import { maxUnavailableOf } from '../../src/model/pools/max-unavailable.ts';
import type { PoolCounts, PoolRecord } from '../../src/model/pools/pool.ts';
import { STEADY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import { execProbe } from '../support/builders/a-probe.ts';
import { aDefinition } from '../support/builders/instance-orders.ts';
import { thePool, APool, counts, type PoolWord } from '../machines/examples.ts';

type Place = keyof PoolCounts;

interface Instance {
  readonly place: Place;
  readonly revision: string;
}

export type Step =
  | {
      readonly do: 'carry out';
      readonly pick: number;
      readonly outcome: 'done' | 'refused' | 'silent';
    }
  | { readonly do: 'move'; readonly pick: number; readonly turn: number }
  /** Another replica ordered this instance. */
  | { readonly do: 'found'; readonly at: Place; readonly revision: string }
  | { readonly do: 'edit'; readonly replicas: number }
  | { readonly do: 'revise'; readonly revision: string; readonly maxUnavailable: string }
  | { readonly do: 'delete'; readonly how: 'keep-running' | 'force' }
  | { readonly do: 'stale record'; readonly age: number }
  | { readonly do: 'lead' | 'follow' | 'restart' | 'deadline' | 'next deadline' }
  | { readonly do: 'time'; readonly ms: number };

/** Possible moves from each place. */
const MOVES: Readonly<Record<Place, readonly (Place | undefined)[]>> = {
  starting: ['idle', 'failed', 'retiring', 'idle'],
  idle: ['running', 'unavailable', 'failed', 'retiring'],
  unavailable: ['idle', 'failed'],
  running: ['stopping'],
  stopping: [undefined],
  retiring: [undefined, 'failed'],
  failed: [undefined],
};

/** Requests may be late, refused or silently dropped. */
export class PoolWorld {
  now = 1_000_000;
  pool: APool;
  readonly policy: PoolPolicy;
  readonly #instances: Instance[] = [];
  readonly #records: PoolRecord[];
  readonly #asked: PoolIntent[] = [];
  readonly #starts: { readonly revision: string; readonly at: number }[] = [];
  #began = this.now;
  #launched = 0;
  #deleting = false;
  #filledOnce = false;

  constructor(policy: PoolPolicy, replicas: number) {
    this.policy = policy;
    this.#records = [thePool({ replicas, definition: probed('r1') })];
    this.pool = new APool({ record: this.#record, policy, now: this.now });
  }

  get #record(): PoolRecord {
    return this.#records.at(-1) ?? thePool();
  }

  get recount(): PoolCounts {
    return recountOf(this.#instances);
  }

  get unclaimed(): number {
    return this.#instances.filter(isUnclaimed).length;
  }

  /** Counted by `replicas`, including pending launches. */
  get present(): number {
    return (
      this.unclaimed +
      this.ordered +
      (this.policy.replicaSemantics === 'total' ? this.recount.running : 0)
    );
  }

  /** Launches not carried out yet. */
  get ordered(): number {
    return this.#asked.reduce(
      (sum, intent) => sum + (intent.type === 'launch' ? intent.count : 0),
      0,
    );
  }

  take(step: Step): void {
    switch (step.do) {
      case 'carry out':
        return this.#carryOut(step.pick, step.outcome);
      case 'move':
        return this.#move(step.pick, step.turn);
      case 'found':
        return this.#place({ index: undefined, revision: step.revision }, step.at, false);
      case 'edit':
        return this.#save({ ...this.#record, replicas: step.replicas });
      case 'revise':
        return this.#save({
          ...this.#record,
          updateRevision: step.revision,
          definition: probed(step.revision),
          updateStrategy: { autoUpdate: true, maxUnavailable: step.maxUnavailable },
        });
      case 'restart':
        return this.#restart();
      case 'delete':
        return this.#save({
          ...this.#record,
          deleting: this.#record.deleting === 'force' ? 'force' : step.how,
        });
      case 'stale record':
        return this.#send({
          type: 'RECORD',
          record: this.#records.at(-1 - step.age) ?? this.#record,
          now: this.now,
        });
      case 'lead':
        return this.#send({ type: 'LEAD', now: this.now });
      case 'follow': {
        this.#asked.length = 0; // what is left of an older epoch is dropped, and nobody is told
        return this.#send({ type: 'FOLLOW' });
      }
      case 'deadline':
        return this.#send({ type: 'DEADLINE', now: this.now });
      case 'next deadline':
        return this.#nextDeadline();
      case 'time': {
        this.now += step.ms;
        this.#reportStarts();
      }
    }
  }

  /** Must soon come to rest. */
  calmDown(): void {
    this.#send({ type: 'LEAD', now: this.now });
    this.#send({ type: 'RECORD', record: this.#record, now: this.now });
    for (let moves = 0; moves < 500; moves++) {
      const restless = this.#instances.findIndex(
        ({ place }) => place !== 'idle' && place !== 'running',
      );
      if (this.#asked.length > 0) this.#carryOut(0, 'done');
      else if (restless >= 0) this.#move(restless, 0);
      else if (this.#starts[0]) {
        this.now = Math.max(this.now, this.#starts[0].at);
        this.#reportStarts();
      } else if (this.pool.context.deadline !== undefined && this.pool.lifecycle !== 'removed')
        this.#nextDeadline();
      else return;
    }
    expect.fail(
      `stuck in ${this.pool.lifecycle}, ${this.pool.scale}, with ${JSON.stringify(this.recount)}`,
    );
  }

  checkRest(): void {
    if (this.#deleting) {
      expect(this.pool.lifecycle).to.equal('removed');
      return;
    }
    if (this.present > this.#record.replicas)
      expect(this.unclaimed, 'only what runs may be too much').to.equal(0);
    else expect(this.present, 'filled').to.equal(this.#record.replicas);
    expect(this.#stale.length, 'unclaimed ones of older revisions').to.equal(0);
    expect(this.pool.rollout).to.equal('current');
    expect(
      this.pool.context.conditions.map(({ status }) => status),
      'nothing remarkable',
    ).to.deep.equal(['False', 'False', 'True']);
  }

  get #stale(): readonly Instance[] {
    return this.#instances.filter(
      (one) => isUnclaimed(one) && one.revision !== this.pool.context.record.updateRevision,
    );
  }

  /** Another process takes over. */
  #restart(): void {
    if (this.pool.lifecycle === 'removed') return;
    this.#asked.length = 0;
    this.#filledOnce = false;
    [this.#began, this.#launched] = [this.now, 0];
    this.pool = new APool({ record: this.#record, policy: this.policy, now: this.now });
    const found = this.#instances.splice(0);
    for (const { place, revision } of found)
      this.#place({ index: undefined, revision }, place, false);
  }

  #nextDeadline(): void {
    this.now = Math.max(this.now, this.pool.context.deadline ?? this.now);
    this.#send({ type: 'DEADLINE', now: this.now });
  }

  #save(record: PoolRecord): void {
    if (record.deleting !== false) this.#deleting = true;
    this.#records.push({ ...record, revision: String(this.#records.length + 1) });
    this.#send({ type: 'RECORD', record: this.#record, now: this.now });
  }

  #move(pick: number, turn: number): void {
    const index = pick % Math.max(1, this.#instances.length);
    const instance = this.#instances[index];
    if (!instance) return;
    const { place: from, revision } = instance;
    const to = MOVES[from][turn % MOVES[from].length];
    this.#place({ index, revision }, to, false);
    if (from === 'starting' && to === 'idle')
      this.#started(revision, turn === 0 ? this.now + STEADY_MS : this.now);
    if (from === 'starting' && to === 'failed')
      this.#send({ type: 'START_FAILED', revision, reason: 'no', now: this.now });
  }

  /** Claimed at once, or known to live after a while. */
  #started(revision: string, at: number): void {
    this.#starts.push({ revision, at });
    this.#reportStarts();
  }

  #reportStarts(): void {
    for (
      let due = this.#starts.findIndex(({ at }) => at <= this.now);
      due >= 0;
      due = this.#starts.findIndex(({ at }) => at <= this.now)
    ) {
      for (const { revision } of this.#starts.splice(due, 1))
        this.#send({ type: 'INSTANCE_STARTED', revision, now: this.now });
    }
  }

  #place(
    { index, revision }: { readonly index: number | undefined; readonly revision: string },
    to: Place | undefined,
    ordered: boolean,
  ): void {
    const from = index === undefined ? undefined : this.#instances[index]?.place;
    const there = to ? [{ place: to, revision }] : [];
    if (index === undefined) this.#instances.push(...there);
    else this.#instances.splice(index, 1, ...there);
    this.#send({ type: 'INSTANCE_MOVED', from, to, revision, ordered, now: this.now });
  }

  /** The first of each kind that `pick` selects. */
  #find(
    place: Place,
    pick: (instance: Instance) => boolean = () => true,
  ): { readonly index: number; readonly revision: string } | undefined {
    const index = this.#instances.findIndex(
      (instance) => instance.place === place && pick(instance),
    );
    const found = this.#instances[index];
    return found && { index, revision: found.revision };
  }

  #carryOut(pick: number, outcome: 'done' | 'refused' | 'silent'): void {
    const [intent] = this.#asked.splice(pick % Math.max(1, this.#asked.length), 1);
    if (!intent) return;
    switch (intent.type) {
      case 'launch':
        return this.#launch(intent.count, outcome);
      case 'await-place':
        return outcome === 'done' ? this.#send({ type: 'PLACE', now: this.now }) : undefined;
      case 'trim':
        return outcome === 'done' ? this.#trim() : undefined;
      case 'replace':
        return outcome === 'done' ? this.#replace() : undefined;
      case 'renew':
        return outcome === 'done' ? this.#renew() : undefined;
      case 'end-running':
        return outcome === 'done' ? this.#endRunning() : undefined;
      case 'save-breaker': {
        if (outcome === 'done' && this.#record.updateRevision === intent.revision)
          this.#save({ ...this.#record, breaker: intent.breaker });
        return;
      }
      case 'save-conditions':
        return outcome === 'done'
          ? this.#save({ ...this.#record, conditions: intent.conditions })
          : undefined;
      case 'remove': {
        if (outcome === 'done') this.#send({ type: 'REMOVED' });
        if (outcome === 'refused') this.#send({ type: 'REMOVE_OUTCOME_UNKNOWN', now: this.now });
      }
    }
  }

  #launch(count: number, outcome: 'done' | 'refused' | 'silent'): void {
    if (outcome !== 'done') return this.#send({ type: 'LAUNCHES_DROPPED', count, now: this.now });
    // Instances appear singly; the others stay ordered.
    if (count > 1) this.#asked.unshift({ type: 'launch', count: count - 1 });
    this.#place(
      { index: undefined, revision: this.pool.context.record.updateRevision },
      'starting',
      true,
    );
  }

  #trim(): void {
    for (const victim of ['starting', 'unavailable', 'idle'] as const) {
      for (
        let found = this.#find(victim);
        found && surplusOf(this.pool.context) > 0;
        found = this.#find(victim)
      ) {
        this.#place(found, 'retiring', false);
        if (!this.#deleting)
          expect(this.present, 'trimmed below replicas').to.be.at.least(
            this.pool.context.record.replicas,
          );
      }
    }
  }

  #replace(): void {
    const isStale = ({ revision }: Instance): boolean =>
      revision !== this.pool.context.record.updateRevision;
    for (const victim of ['starting', 'unavailable', 'idle'] as const) {
      for (
        let found = this.#find(victim, isStale);
        found && replaceableOf(this.pool.context, this.now)[victim] > 0;
        found = this.#find(victim, isStale)
      ) {
        this.#checkReplacement();
        this.#place(found, 'retiring', false);
        if (victim === 'idle') this.#checkAvailable();
      }
    }
  }

  /** Ages everything that is not ready. */
  #renew(): void {
    for (
      let found = this.#find('unavailable');
      found && mayRenew(this.pool.context, this.now);
      found = this.#find('unavailable')
    ) {
      const { starting, retiring } = this.recount;
      expect(starting + this.ordered + retiring, 'another one is being replaced').to.equal(0);
      expect(this.present, 'replaced while another is missing').to.equal(
        this.pool.context.record.replicas,
      );
      this.#place(found, 'retiring', false);
    }
  }

  #checkReplacement(): void {
    const { record, breaker } = this.pool.context;
    expect(breaker.pausedUntil, 'replaced while the breaker pauses').to.be.at.most(this.now);
    if (breaker.failures < this.policy.breaker.failures) return;
    expect(this.present, 'replaced by what can not start, while another is missing').to.equal(
      record.replicas,
    );
    expect(
      this.recount.starting + this.ordered,
      'replaced by what can not start, while another is tried',
    ).to.equal(0);
  }

  #checkAvailable(): void {
    const { replicas, updateStrategy } = this.pool.context.record;
    const wanted = replicas - (this.policy.replicaSemantics === 'total' ? this.recount.running : 0);
    expect(this.recount.idle, 'ready ones left by the rollout').to.be.at.least(
      wanted - maxUnavailableOf(updateStrategy.maxUnavailable, wanted),
    );
    expect(this.present + this.recount.retiring, 'replaced by nothing').to.be.at.least(replicas);
  }

  #endRunning(): void {
    for (let found = this.#find('running'); found; found = this.#find('running'))
      this.#place(found, 'stopping', false);
  }

  #send(event: PoolWord): void {
    const due = this.pool.context.deadline;
    const before = this.pool.lifecycle;
    if (before === 'removed') return; // its actor is no more
    this.pool.send(event);
    expect(this.pool.error, 'the actor threw').to.equal(undefined);
    for (const intent of this.pool.taken()) this.#hear(intent, event);
    this.#checkState();
    if (
      event.type === 'INSTANCE_STARTED' &&
      event.revision === this.pool.context.record.updateRevision
    )
      expect(this.pool.breaker, 'a start closes the breaker').to.equal('closed');
    const { deadline } = this.pool.context;
    if (event.type === 'DEADLINE' && due !== undefined && this.now >= due) {
      expect(
        deadline ?? Number.POSITIVE_INFINITY,
        `${before} leads on from its deadline`,
      ).to.be.above(this.now);
    }
    if (before !== 'removed' && this.pool.lifecycle === 'removed')
      expect(event.type).to.equal('REMOVED');
    if (before.startsWith('deleting'))
      expect(this.pool.lifecycle).to.match(/^(deleting\.|removed)/);
  }

  #hear(intent: PoolIntent, event: PoolWord): void {
    const { context } = this.pool;
    expect(context.leading, `${intent.type} while following`).to.equal(true);
    const isAsked = intent.type === 'await-place' && this.#asked.some(isAwaitPlace);
    if (!isAsked) this.#asked.push(intent);
    if (intent.type === 'launch') {
      this.#checkLaunch(intent.count);
      if (this.policy.refill.places)
        expect([event.type, intent.count], 'launched without a place').to.deep.equal(['PLACE', 1]);
    }
    if (intent.type === 'end-running') expect(this.#record.deleting).to.equal('force');
    if (intent.type === 'remove') {
      expect(this.unclaimed + this.ordered, 'removed with what is unclaimed').to.equal(0);
      if (context.record.deleting === 'force')
        expect(
          this.recount.running + this.recount.stopping + this.recount.retiring,
          'removed under what runs',
        ).to.equal(0);
    }
  }

  #checkLaunch(count: number): void {
    const { record, breaker } = this.pool.context;
    this.#launched += count;
    const { refill } = this.policy;
    expect(this.#deleting, 'launched while it is deleted').to.equal(false);
    expect(breaker.pausedUntil, 'launched while the breaker pauses').to.be.at.most(this.now);
    expect(this.present + this.recount.retiring, 'launched above replicas').to.be.at.most(
      record.replicas,
    );
    const most = breaker.failures >= this.policy.breaker.failures ? 1 : refill.inFlight;
    expect(this.recount.starting + this.ordered, 'starting at once').to.be.at.most(most);
    expect(this.#launched, 'launched faster than it may refill').to.be.at.most(
      refill.burst + ((this.now - this.#began) * refill.perSecond) / 1_000 + 1e-6,
    );
  }

  #checkState(): void {
    const { context, scale, breaker, lifecycle } = this.pool;
    expect(context.counts, 'counts').to.deep.equal(this.recount);
    expect(context.updated, 'of the revision').to.deep.equal(
      recountOf(
        this.#instances.filter(({ revision }) => revision === context.record.updateRevision),
      ),
    );
    if (!this.#deleting && this.#stale.length > 0)
      expect(this.pool.rollout).to.equal(breaker === 'open' ? 'blocked' : 'progressing');
    if (this.#deleting) expect(this.pool.rollout).to.equal('current');
    expect(context.ordered, 'ordered').to.equal(this.ordered);
    expect(breaker).to.equal(
      context.breaker.failures >= this.policy.breaker.failures ? 'open' : 'closed',
    );
    const wanted = !this.#deleting
      ? context.record.replicas
      : this.policy.replicaSemantics === 'total'
        ? this.recount.running
        : 0;
    expect(scale).to.equal(
      this.present < wanted ? 'short' : this.present > wanted ? 'surplus' : 'settled',
    );
    if (!context.leading)
      expect(context.deadline, 'a follower waits for nothing').to.equal(undefined);
    if (lifecycle.startsWith('deleting.') && lifecycle !== 'deleting.draining')
      expect(context.deadline, `deadline of ${lifecycle}`).to.be.a('number');
    if (this.#filledOnce) expect(lifecycle).to.not.equal('pending');
    this.#filledOnce ||= lifecycle === 'active';
  }
}

const probed = (revision: string) =>
  aDefinition({ readinessProbe: execProbe(['true']), env: { REVISION: revision } });

const isAwaitPlace = ({ type }: PoolIntent): boolean => type === 'await-place';

const isUnclaimed = ({ place }: Instance): boolean =>
  place === 'starting' || place === 'idle' || place === 'unavailable';

const recountOf = (instances: readonly Instance[]): PoolCounts => {
  const found = { ...counts() };
  for (const { place } of instances) found[place] += 1;
  return found;
};
