import { expect } from 'chai';
import { createActor, type Actor } from 'xstate';
import {
  LAUNCH_MS,
  LEADER_MS,
  OVERRUN_MS,
  RETRY_MS,
  STEADY_MS,
} from '../../src/machines/sandbox/arithmetic.ts';
import { expiryOf } from '../../src/model/pools/claim-rules.ts';
import type {
  SandboxContext,
  SandboxEvent,
  SandboxInput,
  SandboxIntent,
} from '../../src/machines/sandbox/events.ts';
import { sandboxMachine } from '../../src/machines/sandbox/machine.ts';
import { pathOf } from '../machines/examples.ts';
import type { Call, SandboxStore } from './sandbox-store.ts';

/** This replica has no pending work in these states. */
const PATIENT: ReadonlySet<string> = new Set(['stopping.awaitingLeader', 'stopping.waiting']);

interface Seen {
  readonly path: string;
  readonly state: string;
  readonly context: SandboxContext;
}

/** Checks invariants after every event. */
export class SandboxReplica {
  readonly #store: SandboxStore;
  readonly #actor: Actor<typeof sandboxMachine>;
  readonly #bornAt: number;
  readonly #asked: SandboxIntent['type'][] = [];
  #told = false;
  #reportedFailed = false;

  constructor(store: SandboxStore, input: SandboxInput) {
    this.#store = store;
    this.#bornAt = input.now;
    this.#actor = createActor(sandboxMachine, { input });
    this.#actor.subscribe({ error: () => undefined });
  }

  start(put: (call: Call) => void): void {
    this.#actor.on('*', (intent) => this.#intend(intent, put));
    this.#actor.start();
    this.#checkState(this.#bornAt);
  }

  get seen(): Seen {
    const { value, context } = this.#actor.getSnapshot();
    const path = pathOf(value);
    return { path, state: path.split('.')[0] ?? '', context };
  }

  get deadline(): number | undefined {
    return this.seen.context.deadline;
  }
  get isCompleted(): boolean {
    return this.seen.state === 'completed';
  }
  /** END must not be forgotten. */
  get wasTold(): boolean {
    return this.#told;
  }

  send(event: SandboxEvent, now: number): void {
    const before = this.seen;
    this.#asked.length = 0;
    this.#reportedFailed = false;
    if (event.type === 'END' && !this.isCompleted) this.#told = true;
    this.#actor.send(event);
    this.#checkState(now);
    this.#checkStep(before, event, now);
  }

  #intend(intent: SandboxIntent, put: (call: Call) => void): void {
    this.#asked.push(intent.type);
    if (intent.type !== 'report-start') put(intent);
    else this.#reportedFailed = intent.outcome === 'failed';
  }

  #checkState(now: number): void {
    const snapshot = this.#actor.getSnapshot();
    expect(snapshot.status, String(snapshot.error)).to.not.equal('error');
    const { path, state, context } = this.seen;
    const claim = context.record?.claim;
    switch (state) {
      case 'completed':
        expect(context.deadline, `deadline of ${path}`).to.equal(undefined);
        break;
      case 'idle':
        expect(context.deadline ?? now, `deadline of ${path}`).to.be.at.most(now + STEADY_MS);
        break;
      case 'running': {
        const at = claim && expiryOf(claim, context.activeAt, context.working)?.at;
        if (at === undefined || at > now)
          expect(at, 'running waits for its expiry').to.equal(context.deadline);
        else
          expect(context.deadline, 'running waits for the word that it expired').to.be.at.most(
            now + LEADER_MS,
          );
        break;
      }
      case 'starting': {
        const startBy = (context.record?.createdAt ?? 0) + (context.record?.startupTimeoutMs ?? 0);
        expect(context.deadline, `deadline of ${path}`).to.be.at.most(
          Math.max(now + LAUNCH_MS, startBy),
        );
        break;
      }
      case 'claiming':
        expect(context.deadline, `deadline of ${path}`).to.be.at.most(
          Math.max(now + RETRY_MS, context.claiming?.until ?? 0),
        );
        break;
      default: {
        const endsBy = path === 'stopping.waiting' ? (context.endsBy ?? 0) + OVERRUN_MS : 0;
        expect(context.deadline, `deadline of ${path}`).to.be.at.most(
          Math.max(now + (PATIENT.has(path) ? LEADER_MS : RETRY_MS), endsBy),
        );
      }
    }
    if (this.#asked.includes('retire'))
      expect(claim, 'what is known to be claimed is never retired').to.equal(undefined);
  }

  #checkStep(before: Seen, event: SandboxEvent, now: number): void {
    const after = this.seen;
    const step = `${before.path} → ${after.path} by ${event.type}`;
    const due = before.context.deadline;
    // for a time that may be over already
    const beginsToRun = before.state !== 'running' && after.state === 'running';
    if (event.type === 'DEADLINE' && due !== undefined && now >= due && !beginsToRun) {
      expect(
        after.context.deadline ?? Number.POSITIVE_INFINITY,
        `${step} leads on from its deadline`,
      ).to.be.above(now);
    }
    this.#checkRecord(before, event, step);
    if (event.type === 'LEADING') {
      const isLeft = before.path === 'starting.booting' && before.context.unlaunched === true;
      expect(after.path, step).to.equal(isLeft ? 'stopping.retiring' : before.path);
    }
    if (before.context.unlaunched && event.type !== 'FACT')
      expect(
        this.#reportedFailed && before.path === 'starting.booting',
        `${step} blames a start that never was`,
      ).to.equal(false);
    if (before.state !== 'claiming' && after.state === 'claiming')
      expect(`${before.path} ${event.type}`).to.equal('idle.available CLAIM');
    if (before.state === 'running' && after.state !== 'running')
      expect(mayLeaveRunning(before, event, now), step).to.equal(true);
    if (beginsToRun) this.#checkRunning(after, step);
    if (before.state !== 'completed' && after.state === 'completed')
      this.#checkCompleted(before, step);
  }

  /** Records never become unclaimed or undeleted again. */
  #checkRecord(before: Seen, event: SandboxEvent, step: string): void {
    const {
      path,
      state,
      context: { record },
    } = this.seen;
    const known = before.context.record;
    if (known && record)
      expect(STAGES.indexOf(record.state), `${step} puts its record back`).to.be.at.least(
        STAGES.indexOf(known.state),
      );
    if (before.state === 'stopping' && !known)
      expect(record, `${step} brings its record back`).to.equal(undefined);
    if (event.type === 'FACT' && !event.fact.record)
      expect([state, path], `${step} without a record`).to.not.include.oneOf([
        'idle',
        'starting.booting',
      ]);
  }

  #checkRunning({ context }: Seen, step: string): void {
    expect(this.#told, `${step} although told to END`).to.equal(false);
    const claim = context.record?.claim;
    expect(this.#store.claims, `${step} with the one claim that was written`).to.have.length(1);
    const written = this.#store.claims[0];
    expect(claim?.owner).to.deep.equal(written?.owner);
    expect(claim?.claimedAt).to.equal(written?.claimedAt);
    const terms = [claim?.idleTimeoutMs ?? 0, claim?.maxLifetimeMs ?? 0].filter((ms) => ms > 0);
    const least = (claim?.claimedAt ?? 0) + Math.min(...terms, Number.MAX_SAFE_INTEGER);
    expect(context.deadline ?? Number.POSITIVE_INFINITY, `${step} keeps its time`).to.be.at.least(
      Math.min(least, Number.MAX_SAFE_INTEGER),
    );
  }

  #checkCompleted(before: Seen, step: string): void {
    const claim = before.context.record?.claim;
    if (!claim) return;
    const last = this.#store.history.at(-1);
    expect(last?.claimedAt, `${step} leaves history`).to.equal(claim.claimedAt);
    expect(last?.owner).to.deep.equal(claim.owner);
    expect(last?.endReason).to.be.a('string').and.not.equal('retired');
  }
}

const STAGES: readonly string[] = ['idle', 'claimed', 'ending'];

const mayLeaveRunning = ({ context }: Seen, event: SandboxEvent, now: number): boolean => {
  if (event.type === 'END') return true;
  if (event.type === 'FACT')
    return event.fact.vitals.kind === 'gone' || event.fact.record?.state !== 'claimed';
  const claim = context.record?.claim;
  const expiry = claim && expiryOf(claim, context.activeAt, context.working);
  return event.type === 'EXPIRED' && expiry !== undefined && now >= expiry.at;
};
