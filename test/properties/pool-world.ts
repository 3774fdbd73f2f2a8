import { expect } from 'chai';
import type { PoolPolicy } from '../../src/machines/pool-arithmetic.ts';
import { surplusOf, type PoolEvent, type PoolIntent } from '../../src/machines/pool-machine.ts';
import type { PoolCounts, PoolRecord } from '../../src/model/pool.ts';
import { aPool, APool, counts } from '../machines/examples.ts';

type Place = keyof PoolCounts;

export type Step =
  | { readonly do: 'carry out'; readonly pick: number; readonly outcome: 'done' | 'refused' | 'silent' }
  | { readonly do: 'move'; readonly pick: number; readonly turn: number }
  /** An instance that this pool's actor did not order: found at start, or another replica's. */
  | { readonly do: 'found'; readonly at: Place }
  | { readonly do: 'edit'; readonly replicas: number }
  | { readonly do: 'delete'; readonly how: 'keep-running' | 'force' }
  | { readonly do: 'stale record'; readonly age: number }
  | { readonly do: 'lead' | 'follow' | 'deadline' | 'next deadline' }
  | { readonly do: 'time'; readonly ms: number };

/** Where an instance may go from each place. */
const MOVES: Readonly<Record<Place, readonly (Place | undefined)[]>> = {
  starting: ['idle', 'failed', 'stopping', 'idle'],
  idle: ['running', 'unavailable', 'failed', 'stopping'],
  unavailable: ['idle', 'failed'],
  running: ['stopping'],
  stopping: [undefined],
  failed: [undefined],
};

/** One pool's actor over instances that come and go. What it asks for is carried out late, refused, or dropped unheard. */
export class PoolWorld {
  now = 1_000_000;
  readonly pool: APool;
  readonly policy: PoolPolicy;
  readonly #instances: Place[] = [];
  readonly #records: PoolRecord[];
  readonly #asked: PoolIntent[] = [];
  readonly #began = this.now;
  #launched = 0;
  #deleting = false;
  #filledOnce = false;

  constructor(policy: PoolPolicy, replicas: number) {
    this.policy = policy;
    this.#records = [aPool({ replicas })];
    this.pool = new APool({ record: this.#record, policy, now: this.now });
  }

  get #record(): PoolRecord { return this.#records.at(-1) ?? aPool(); }

  get recount(): PoolCounts {
    const found = { ...counts() };
    for (const place of this.#instances) found[place] += 1;
    return found;
  }

  get unclaimed(): number { return this.#instances.filter((place) => place === 'starting' || place === 'idle' || place === 'unavailable').length; }

  /** What `replicas` counts, launches under way included. */
  get present(): number {
    return this.unclaimed + this.ordered + (this.policy.replicaSemantics === 'total' ? this.recount.running : 0);
  }

  /** Launches asked for and not yet carried out. */
  get ordered(): number { return this.#asked.reduce((sum, intent) => sum + (intent.type === 'launch' ? intent.count : 0), 0); }

  take(step: Step): void {
    switch (step.do) {
      case 'carry out': return this.#carryOut(step.pick, step.outcome);
      case 'move': return this.#move(step.pick, step.turn);
      case 'found': return this.#place(undefined, step.at, false);
      case 'edit': return this.#save({ ...this.#record, replicas: step.replicas });
      case 'delete': return this.#save({ ...this.#record, deleting: this.#record.deleting === 'force' ? 'force' : step.how });
      case 'stale record': return this.#send({ type: 'RECORD', record: this.#records.at(-1 - step.age) ?? this.#record, now: this.now });
      case 'lead': return this.#send({ type: 'LEAD', now: this.now });
      case 'follow': {
        this.#asked.length = 0; // what is left of an older epoch is dropped, and nobody is told
        return this.#send({ type: 'FOLLOW' });
      }
      case 'deadline': return this.#send({ type: 'DEADLINE', now: this.now });
      case 'next deadline': return this.#nextDeadline();
      case 'time': this.now += step.ms;
    }
  }

  /** From here on all is done as asked, and what starts gets ready. Ends when nothing waits any more, which must be soon. */
  calmDown(): void {
    this.#send({ type: 'LEAD', now: this.now });
    this.#send({ type: 'RECORD', record: this.#record, now: this.now });
    for (let moves = 0; moves < 500; moves++) {
      const restless = this.#instances.findIndex((place) => place === 'starting' || place === 'stopping' || place === 'failed');
      if (this.#asked.length > 0) this.#carryOut(0, 'done');
      else if (restless >= 0) this.#move(restless, 0);
      else if (this.pool.context.deadline !== undefined && this.pool.lifecycle !== 'removed') this.#nextDeadline();
      else return;
    }
    expect.fail(`stuck in ${this.pool.lifecycle}, ${this.pool.scale}, with ${JSON.stringify(this.recount)}`);
  }

  /** What must hold once nothing waits any more. */
  checkRest(): void {
    if (this.#deleting) {
      expect(this.pool.lifecycle).to.equal('removed');
      return;
    }
    if (this.present > this.#record.replicas) expect(this.unclaimed, 'only what runs may be too much').to.equal(0);
    else expect(this.present, 'filled').to.equal(this.#record.replicas);
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
    const from = this.#instances[index];
    if (!from) return;
    const to = MOVES[from][turn % MOVES[from].length];
    this.#place(index, to, false);
    if (from === 'starting' && to === 'idle') this.#send({ type: 'INSTANCE_STARTED', now: this.now });
    if (from === 'starting' && to === 'failed') this.#send({ type: 'START_FAILED', reason: 'no', now: this.now });
  }

  #place(index: number | undefined, to: Place | undefined, ordered: boolean): void {
    const from = index === undefined ? undefined : this.#instances[index];
    if (index === undefined) this.#instances.push(...(to ? [to] : []));
    else this.#instances.splice(index, 1, ...(to ? [to] : []));
    this.#send({ type: 'INSTANCE_MOVED', from, to, ordered, now: this.now });
  }

  #carryOut(pick: number, outcome: 'done' | 'refused' | 'silent'): void {
    const [intent] = this.#asked.splice(pick % Math.max(1, this.#asked.length), 1);
    if (!intent) return;
    switch (intent.type) {
      case 'launch': return this.#launch(intent.count, outcome);
      case 'trim': return outcome === 'done' ? this.#trim() : undefined;
      case 'end-running': return outcome === 'done' ? this.#endRunning() : undefined;
      case 'save-breaker': return outcome === 'done' ? this.#save({ ...this.#record, breaker: intent.breaker }) : undefined;
      case 'remove': {
        if (outcome === 'done') this.#send({ type: 'REMOVED' });
        if (outcome === 'refused') this.#send({ type: 'REMOVE_UNSETTLED', now: this.now });
      }
    }
  }

  #launch(count: number, outcome: 'done' | 'refused' | 'silent'): void {
    if (outcome !== 'done') return this.#send({ type: 'LAUNCHES_DROPPED', count, now: this.now });
    // Each one appears by itself; those after it are still ordered.
    if (count > 1) this.#asked.unshift({ type: 'launch', count: count - 1 });
    this.#place(undefined, 'starting', true);
  }

  #trim(): void {
    for (const victim of ['starting', 'unavailable', 'idle'] as const) {
      for (let index = this.#instances.indexOf(victim); index >= 0 && surplusOf(this.pool.context) > 0; index = this.#instances.indexOf(victim)) {
        this.#place(index, 'stopping', false);
        if (!this.#deleting) expect(this.present, 'trimmed below replicas').to.be.at.least(this.pool.context.record.replicas);
      }
    }
  }

  #endRunning(): void {
    for (let index = this.#instances.indexOf('running'); index >= 0; index = this.#instances.indexOf('running')) this.#place(index, 'stopping', false);
  }

  #send(event: PoolEvent): void {
    const due = this.pool.context.deadline;
    const before = this.pool.lifecycle;
    if (before === 'removed') return; // its actor is no more
    this.pool.send(event);
    expect(this.pool.error, 'the actor threw').to.equal(undefined);
    for (const intent of this.pool.taken()) this.#hear(intent);
    this.#checkState();
    if (event.type === 'INSTANCE_STARTED') expect(this.pool.breaker, 'a start closes the breaker').to.equal('closed');
    const { deadline } = this.pool.context;
    if (event.type === 'DEADLINE' && due !== undefined && this.now >= due) {
      expect(deadline ?? Number.POSITIVE_INFINITY, `${before} leads on from its deadline`).to.be.above(this.now);
    }
    if (before !== 'removed' && this.pool.lifecycle === 'removed') expect(event.type).to.equal('REMOVED');
    if (before.startsWith('deleting')) expect(this.pool.lifecycle).to.match(/^(deleting\.|removed)/);
  }

  #hear(intent: PoolIntent): void {
    const { context } = this.pool;
    expect(context.leading, `${intent.type} while following`).to.equal(true);
    this.#asked.push(intent);
    if (intent.type === 'launch') this.#checkLaunch(intent.count);
    if (intent.type === 'end-running') expect(this.#record.deleting).to.equal('force');
    if (intent.type === 'remove') {
      expect(this.unclaimed + this.ordered, 'removed with what is unclaimed').to.equal(0);
      if (context.record.deleting === 'force') expect(this.recount.running + this.recount.stopping, 'removed under what runs').to.equal(0);
    }
  }

  #checkLaunch(count: number): void {
    const { record, breaker } = this.pool.context;
    this.#launched += count;
    const { refill } = this.policy;
    expect(this.#deleting, 'launched while it is deleted').to.equal(false);
    expect(breaker.pausedUntil, 'launched while the breaker pauses').to.be.at.most(this.now);
    expect(this.present, 'launched above replicas').to.be.at.most(record.replicas);
    const most = breaker.failures >= this.policy.breaker.failures ? 1 : refill.inFlight;
    expect(this.recount.starting + this.ordered, 'starting at once').to.be.at.most(most);
    expect(this.#launched, 'launched faster than it may refill').to.be.at.most(refill.burst + ((this.now - this.#began) * refill.perSecond) / 1_000 + 1e-6);
  }

  #checkState(): void {
    const { context, scale, breaker, lifecycle } = this.pool;
    expect(context.counts, 'counts').to.deep.equal(this.recount);
    expect(context.ordered, 'ordered').to.equal(this.ordered);
    expect(breaker).to.equal(context.breaker.failures >= this.policy.breaker.failures ? 'open' : 'closed');
    const wanted = !this.#deleting ? context.record.replicas : this.policy.replicaSemantics === 'total' ? this.recount.running : 0;
    expect(scale).to.equal(this.present < wanted ? 'short' : this.present > wanted ? 'surplus' : 'settled');
    if (!context.leading) expect(context.deadline, 'a follower waits for nothing').to.equal(undefined);
    if (lifecycle.startsWith('deleting.') && lifecycle !== 'deleting.draining') expect(context.deadline, `deadline of ${lifecycle}`).to.be.a('number');
    if (this.#filledOnce) expect(lifecycle).to.not.equal('pending');
    this.#filledOnce ||= lifecycle === 'active';
  }
}
