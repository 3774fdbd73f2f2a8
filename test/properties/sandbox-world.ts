import { expect } from 'chai';
import { RETRY_MS } from '../../src/machines/sandbox/arithmetic.ts';
import type { SandboxEvent, SandboxInput } from '../../src/machines/sandbox/events.ts';
import type { LaunchOrder, Claim } from '../../src/model/sandbox.ts';
import { aLaunchOrder } from '../machines/examples.ts';
import { SandboxReplica } from './sandbox-replica.ts';
import { SandboxStore, type Call, type Landing, type Outcome } from './sandbox-store.ts';

export type Step =
  | { readonly do: 'carry out'; readonly pick: number; readonly outcome: Outcome }
  /** Answers may come out of order and repeatedly. */
  | { readonly do: 'answer'; readonly pick: number; readonly again: boolean }
  | { readonly do: 'report'; readonly to: number; readonly age: number }
  | {
      readonly do: 'end' | 'retire' | 'work begins' | 'work ends' | 'active' | 'deadline' | 'crash';
      readonly to: number;
    }
  | {
      readonly do: 'claim';
      readonly to: number;
      readonly idleTimeoutMs: number;
      readonly maxLifetimeMs: number;
    }
  | { readonly do: 'amend'; readonly to: number; readonly idleTimeoutMs: number }
  | { readonly do: 'bump' }
  | { readonly do: 'lead'; readonly by: number }
  | { readonly do: 'process'; readonly becomes: 'available' | 'unavailable' | 'gone' }
  | { readonly do: 'time'; readonly ms: number };

interface Pending<T> {
  readonly from: SandboxReplica;
  readonly it: T;
}

const REPLICAS = [0, 1] as const;
const REQUEST_MS = 5_000;

/** Answers and reports are late, lost, repeated, stale and out of order. */
export class SandboxWorld {
  now = 1_000_000;
  readonly store: SandboxStore;
  readonly #replicas: (SandboxReplica | undefined)[] = [undefined, undefined];
  readonly #calls: Pending<Call>[] = [];
  readonly #answers: Pending<SandboxEvent>[] = [];
  readonly #caughtUp = [-1, -1];
  #claims = 0;
  #leader = 0;

  constructor(launchOrder: LaunchOrder = aLaunchOrder()) {
    this.store = new SandboxStore(launchOrder.record.id);
    this.#replicas[0] = this.#host({
      now: this.now,
      launchOrder: { ...launchOrder, record: { ...launchOrder.record, createdAt: this.now } },
    });
  }

  get replicas(): readonly SandboxReplica[] {
    return this.#replicas.flatMap((replica) => replica ?? []);
  }

  replica(index: number): SandboxReplica | undefined {
    return this.#replicas[index];
  }

  take(step: Step): void {
    switch (step.do) {
      case 'carry out':
        return this.#carryOut(step.pick, step.outcome);
      case 'answer':
        return this.#answer(step.pick, step.again);
      case 'report':
        return this.#report(step.to, step.age);
      case 'end':
        return this.#send(step.to, { type: 'END', reason: 'deleted', now: this.now });
      case 'retire':
        return this.#send(step.to, { type: 'RETIRE', now: this.now });
      case 'work begins':
        return this.#send(step.to, { type: 'WORK_BEGAN', now: this.now });
      case 'work ends':
        return this.#send(step.to, { type: 'WORK_ENDED', now: this.now });
      case 'active':
        return this.#send(step.to, { type: 'ACTIVE', now: this.now });
      case 'deadline':
        return this.#send(step.to, { type: 'DEADLINE', now: this.now });
      case 'crash':
        this.#replicas[step.to] = undefined;
        return;
      case 'claim':
        return this.#send(step.to, {
          type: 'CLAIM',
          claim: this.#newClaim(step),
          now: this.now,
          until: this.now + REQUEST_MS,
        });
      case 'amend': {
        const record = this.store.amend(step.idleTimeoutMs);
        if (record) this.#send(step.to, { type: 'AMENDED', record, now: this.now });
        return;
      }
      case 'bump':
        return this.store.bump();
      case 'lead': {
        this.#leader = step.by;
        return this.#send(step.by, { type: 'LEADING', now: this.now });
      }
      case 'process':
        return this.store.become(step.becomes, this.now);
      case 'time':
        this.now += step.ms;
    }
  }

  /** Must soon come to rest. */
  calmDown(): void {
    this.#caughtUp.fill(-1);
    // Else a replica that doesn't know the commands asks for ever whether the sandbox expired.
    for (const to of REPLICAS)
      while ((this.#replicas[to]?.seen.context.working ?? 0) > 0)
        this.#send(to, { type: 'WORK_ENDED', now: this.now });
    // A living replica leads.
    if (!this.#replicas[this.#leader]) this.#leader = 1 - this.#leader;
    this.#send(this.#leader, { type: 'LEADING', now: this.now });
    for (let moves = 0; moves < 400; moves++) {
      if (this.#settle()) continue;
      const next = Math.min(
        ...this.replicas.map((replica) => replica.deadline ?? Number.POSITIVE_INFINITY),
      );
      if (next === Number.POSITIVE_INFINITY) return;
      this.now = Math.max(this.now, next);
      for (const to of REPLICAS) this.#send(to, { type: 'DEADLINE', now: this.now });
    }
    expect.fail(`stuck in ${this.replicas.map(({ seen }) => seen.path).join(' and ')}`);
  }

  checkRest(): void {
    for (const { seen, wasTold } of this.replicas) {
      expect(seen.state).to.be.oneOf(['idle', 'running']);
      expect(this.store.record?.state, `the record under ${seen.path}`).to.equal(
        seen.state === 'idle' ? 'idle' : 'claimed',
      );
      expect(wasTold, `told to end, and ${seen.path}`).to.equal(false);
    }
    if (this.replicas.length === 0)
      expect(this.store.isOver, 'nothing of it is left').to.equal(true);
  }

  /** Reads work. Returns the most calls of one moment. */
  refuseWrites(): number {
    const until = this.now + 10 * RETRY_MS;
    let most = 0;
    for (let moment = 0; moment < 1_000 && this.now < until; moment++) {
      let calls = 0;
      for (; this.#calls.length + this.#answers.length > 0 && calls < 100; calls++) {
        if (this.#calls.length > 0)
          this.#carryOut(0, this.#calls[0]?.it.type === 'look' ? 'answered' : 'unknown-lost');
        if (this.#answers.length > 0) this.#answer(0, false);
      }
      most = Math.max(most, calls);
      const next = Math.min(
        ...this.replicas.map((replica) => replica.deadline ?? Number.POSITIVE_INFINITY),
      );
      if (next === Number.POSITIVE_INFINITY) return most;
      this.now = Math.max(this.now, next);
      for (const to of REPLICAS) this.#send(to, { type: 'DEADLINE', now: this.now });
    }
    return most;
  }

  /** False if nothing is left. */
  #settle(): boolean {
    if (this.#calls.length > 0) this.#carryOut(0, 'answered');
    else if (this.#answers.length > 0) this.#answer(0, false);
    else if (this.store.dying && this.store.vitals?.kind !== 'gone')
      this.store.become('gone', this.now);
    else return REPLICAS.some((to) => this.#catchUp(to));
    return true;
  }

  /** Reports the current state once. */
  #catchUp(to: number): boolean {
    if (this.#caughtUp[to] === this.store.facts.length) return false;
    this.#caughtUp[to] = this.store.facts.length;
    this.#report(to, 0);
    return true;
  }

  #carryOut(pick: number, outcome: Outcome): void {
    const [call] = this.#calls.splice(pick % Math.max(1, this.#calls.length), 1);
    if (!call) return;
    if (isLeaders(call.it) && this.#replicas.indexOf(call.from) !== this.#leader) {
      this.#answers.push({ from: call.from, it: { type: 'NOT_LEADING', now: this.now } });
      return;
    }
    const half = outcome === 'silent-half' && call.it.type === 'launch';
    const landing =
      outcome === 'answered' || outcome.endsWith('landed') || half
        ? this.store.land(call.it, half)
        : undefined;
    expect(this.store.faults).to.deep.equal([]);
    if (outcome.startsWith('silent')) return;
    const it =
      outcome === 'answered' && landing
        ? answerOf(call.it, landing, this.now)
        : outcomeUnknown(call.it, outcome, this.now);
    this.#answers.push({ from: call.from, it });
  }

  #answer(pick: number, again: boolean): void {
    const index = pick % Math.max(1, this.#answers.length);
    const answer = this.#answers[index];
    if (!answer) return;
    if (!again) this.#answers.splice(index, 1);
    const to = this.#replicas.indexOf(answer.from);
    if (to >= 0) this.#send(to, this.#asTold(answer.it));
  }

  /** Reads from before a birth are not reported after its answer: see SandboxDriver.read. */
  #asTold(it: SandboxEvent): SandboxEvent {
    if (!('now' in it)) return it;
    const isOfBefore =
      it.type === 'FACT' && it.fact.record === undefined && this.store.record !== undefined;
    return isOfBefore ? { ...it, fact: this.store.fact, now: this.now } : { ...it, now: this.now };
  }

  /** Reports the state of `age` changes ago. Creates a missing actor. */
  #report(to: number, age: number): void {
    if (this.store.facts.length === 0) return; // nothing is reported before it is born
    const fact = age === 0 ? this.store.fact : this.store.facts.at(-1 - age);
    if (!fact) return;
    if (this.#replicas[to]) this.#send(to, { type: 'FACT', fact, now: this.now });
    else if (fact.record)
      this.#replicas[to] = this.#host({ now: this.now, fact: { ...fact, record: fact.record } });
  }

  #send(to: number, event: SandboxEvent): void {
    const replica = this.#replicas[to];
    replica?.send(event, this.now);
    if (replica?.isCompleted) this.#replicas[to] = undefined;
  }

  #host(input: SandboxInput): SandboxReplica {
    const replica: SandboxReplica = new SandboxReplica(this.store, input);
    replica.start((call) => this.#calls.push({ from: replica, it: call }));
    return replica;
  }

  #newClaim(terms: Pick<Claim, 'idleTimeoutMs' | 'maxLifetimeMs'>): Claim {
    this.#claims += 1;
    return {
      owner: { namespace: 'alpha', team: 'alpha', user: `user-${this.#claims}` },
      claimedAt: this.now,
      idleTimeoutMs: terms.idleTimeoutMs,
      maxLifetimeMs: terms.maxLifetimeMs,
    };
  }
}

const isLeaders = (call: Call): boolean =>
  call.type === 'launch' ||
  call.type === 'confirm-expiry' ||
  call.type === 'close' ||
  ('asked' in call && !call.asked) ||
  'patient' in call;

const answerOf = (call: Call, landing: Landing, now: number): SandboxEvent => {
  if (landing.kind === 'seen') return { type: 'FACT', fact: landing.fact, now };
  if (landing.kind === 'conflict')
    return call.type === 'launch'
      ? { type: 'LAUNCH_REFUSED', reason: 'the id was used' }
      : outcomeUnknown(call, 'failed', now);
  switch (call.type) {
    case 'retire':
      return { type: 'RETIRED', now };
    case 'release':
      return { type: 'RELEASED', now };
    case 'close':
      return { type: 'CLOSED' };
    case 'confirm-expiry':
      return { type: 'EXPIRED', reason: call.reason, now };
    default: {
      if (!landing.record) throw new Error(`${call.type} landed without a record`);
      return call.type === 'launch'
        ? { type: 'LAUNCHED', record: landing.record, now }
        : { type: 'CLAIMED', record: landing.record, now };
    }
  }
};

const outcomeUnknown = (call: Call, outcome: Outcome, now: number): SandboxEvent => {
  switch (call.type) {
    case 'launch':
      return outcome === 'failed'
        ? { type: 'LAUNCH_REFUSED', reason: 'no room' }
        : { type: 'LAUNCH_UNKNOWN', now };
    case 'claim':
      return { type: 'CLAIM_OUTCOME_UNKNOWN', now };
    case 'retire':
      return { type: 'RETIRE_OUTCOME_UNKNOWN', now };
    case 'release':
      return { type: 'RELEASE_OUTCOME_UNKNOWN', now };
    case 'close':
      return { type: 'CLOSE_OUTCOME_UNKNOWN', now };
    // A failed read is no answer.
    case 'look':
    case 'confirm-expiry':
      return { type: 'WORK_ENDED', now };
  }
};
