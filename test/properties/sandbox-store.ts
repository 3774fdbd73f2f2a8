import type {
  LaunchOrder,
  Claim,
  FinishedSandbox,
  InstanceFact,
  InstanceRecord,
  Vitals,
} from '../../src/model/sandbox.ts';
import type { SandboxIntent } from '../../src/machines/sandbox/events.ts';

export type Call = Exclude<SandboxIntent, { type: 'report-start' }>;

/**
 * `unknown`: the caller learns so; `silent`: nothing arrives. `half`: only a launch's record is
 * written.
 */
export const OUTCOMES = [
  'answered',
  'unknown-landed',
  'unknown-lost',
  'silent-landed',
  'silent-lost',
  'silent-half',
  'failed',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

export type Landing =
  | { readonly kind: 'done'; readonly record?: InstanceRecord }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'seen'; readonly fact: InstanceFact };

const UNLAUNCHED: Vitals = { kind: 'starting', unlaunched: true };

/**
 * One record with a revision, one process, conditional writes, and an id that never makes a second
 * instance.
 */
export class SandboxStore {
  readonly id: string;
  record: InstanceRecord | undefined;
  vitals: Vitals | undefined;
  /** Ends some time later. */
  dying = false;
  readonly claims: Claim[] = [];
  readonly history: FinishedSandbox[] = [];
  /** Breaches such as a release without a holder. */
  readonly faults: string[] = [];
  /** Newest last; any may still be reported. */
  readonly facts: InstanceFact[] = [];
  #revision = 0;
  #born = false;

  constructor(id: string) {
    this.id = id;
  }

  get fact(): InstanceFact {
    const none: Vitals = { kind: 'gone', exitCode: null, reason: 'no process' };
    return { id: this.id, record: this.record, vitals: this.vitals ?? none };
  }

  get isOver(): boolean {
    return this.record === undefined && (this.vitals === undefined || this.vitals.kind === 'gone');
  }

  land(call: Call, half = false): Landing {
    switch (call.type) {
      case 'launch':
        return this.#launch(call.launchOrder.record, half);
      case 'claim':
        return this.#claim(call.claim, call.seen.revision);
      case 'retire':
        return this.#retire(call.seen);
      case 'release': {
        if (this.record?.state === 'idle') this.faults.push('released what nobody holds');
        if (this.record?.state === 'claimed')
          this.#write({ ...this.record, state: 'ending', end: call.end });
        if (this.record) this.#kill();
        return { kind: 'done' };
      }
      case 'look':
        return { kind: 'seen', fact: this.fact };
      case 'confirm-expiry':
        return { kind: 'done' };
      case 'close': {
        if (this.record && this.vitals && this.vitals.kind !== 'gone')
          this.faults.push('forgot what still runs');
        if (call.finished) this.history.push(call.finished);
        if (this.record) this.#write(undefined);
        return { kind: 'done' };
      }
    }
  }

  become(kind: 'available' | 'unavailable' | 'gone', now: number): void {
    if (!this.vitals || this.vitals.kind === 'gone') return;
    const startedAt = 'startedAt' in this.vitals ? this.vitals.startedAt : now;
    if (kind !== 'gone' && this.vitals === UNLAUNCHED) return;
    if (kind === 'gone') this.vitals = { kind, exitCode: this.dying ? null : 7, reason: 'exited' };
    else if (this.dying) return;
    else
      this.vitals =
        kind === 'available' ? { kind, startedAt } : { kind, startedAt, reason: 'not answering' };
    this.facts.push(this.fact);
  }

  amend(idleTimeoutMs: number): InstanceRecord | undefined {
    if (this.record?.state !== 'claimed' || !this.record.claim) return undefined;
    return this.#write({ ...this.record, claim: { ...this.record.claim, idleTimeoutMs } });
  }

  /** A write without a change of content. */
  bump(): void {
    if (this.record) this.#write(this.record);
  }

  #launch(launchOrder: LaunchOrder['record'], half: boolean): Landing {
    if (this.#born && !this.record) return { kind: 'conflict' };
    if (this.record) {
      if (!half && this.vitals === UNLAUNCHED) {
        this.vitals = { kind: 'starting' };
        this.facts.push(this.fact);
      }
      return { kind: 'done', record: this.record };
    }
    this.#born = true;
    this.vitals = half ? UNLAUNCHED : { kind: 'starting' };
    const record = this.#write({ ...launchOrder, revision: '', state: 'idle' });
    return { kind: 'done', record };
  }

  #claim(claim: Claim, seen: string): Landing {
    if (this.record?.state !== 'idle' || this.record.revision !== seen) return { kind: 'conflict' };
    this.claims.push(claim);
    const record = this.#write({ ...this.record, state: 'claimed', claim });
    return { kind: 'done', record };
  }

  #retire(seen: string): Landing {
    if (this.record?.state !== 'idle' || this.record.revision !== seen) return { kind: 'conflict' };
    this.#kill();
    this.#write(undefined);
    return { kind: 'done' };
  }

  #kill(): void {
    if (this.vitals && this.vitals.kind !== 'gone') this.dying = true;
  }

  #write(next: InstanceRecord | undefined): InstanceRecord | undefined {
    this.record = next && { ...next, revision: String(++this.#revision) };
    this.facts.push(this.fact);
    return this.record;
  }
}
