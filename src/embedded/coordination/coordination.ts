import type { Clock } from '../../contracts/clock.ts';
import {
  type Claims,
  MAX_WAITING_OF_POOL,
  type WaitedPool,
  type WaitingPlace,
} from '../../contracts/coordination/claims.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import type {
  DemandSignal,
  DemandSignals,
  Revocations,
} from '../../contracts/coordination/signals.ts';
import type { EventLog } from '../../contracts/coordination/event-log.ts';
import type { Lease } from '../../contracts/coordination/leases.ts';
import type { KeptAnswers } from '../store/kept-answers.ts';
import { ActivityMarks } from '../store/activity-marks.ts';
import { EVENT_NUMBERS_PER_MS, EventRing } from '../../model/event-ring.ts';
import { RateWindows } from '../../lib/rate-windows.ts';
import { SHARDS } from '../../model/shards.ts';
import { ClusterStartStore } from './cluster-start-store.ts';
import { inProcessConsoleSessions } from './console-session-store.ts';
import { TokenStore } from './token-store.ts';
import { inProcessQuotas, Usages } from './usages.ts';
import { tooManyWaiting } from '../../model/limit-refusals.ts';

/**
 * Coordination for the one replica there is: in memory, gone with the process, but for the answers
 * that are kept. Usage is restored from the records by whoever starts it.
 */
export const inProcessCoordination = (
  clock: Clock,
  answers: KeptAnswers,
  replica = 'local',
): Coordination => {
  const tokens = new TokenStore(clock);
  const activity = new ActivityMarks(clock);
  const windows = new RateWindows(clock);

  const usages = new Usages();

  return {
    ...inProcessQuotas(usages),
    ...inProcessClaims(usages, answers),
    ...inProcessEvents(clock),
    ...inProcessRevocations(),
    ...inProcessDemand(),
    ...inProcessConsoleSessions(clock),
    ...new ClusterStartStore(clock).of(replica),
    // There is nobody else.
    askReplica: async () => undefined,
    answerReplicas: () => () => undefined,
    issueToken: async (...call) => tokens.issue(...call),
    peekToken: async (token) => tokens.peek(token),
    redeemToken: async (token) => tokens.redeem(token),
    openRequest: (mark) => answers.open(mark),
    peekRequest: (mark) => answers.peek(mark),
    confirmRequest: async (mark) => answers.isInFlight(mark),
    keepAnswer: (mark, owner, answer) => answers.keep(mark, owner, answer),
    giveUpRequest: async (mark) => answers.giveUp(mark),
    touch: (id) => activity.touch(id),
    work: (id, goesOn) => activity.work(id, goesOn),
    expire: async (id, of) => activity.expire(id, of),
    markEnded: async (id, end) => activity.markEnded(id, end),
    ended: async (id) => activity.ended(id),
    countWithin: async (name, limit, windowMs) => windows.count(name, limit, windowMs),
    lease: () => ONLY_LEASE,
    follow: (listener) => {
      for (let shard = 0; shard < SHARDS; shard++) listener.gained(shard);
      return () => undefined;
    },
    giveUp: async () => undefined,
    leave: () => undefined,
    join: () => undefined,
    replicas: () => [replica],
    holders: () => new Map(Array.from({ length: SHARDS }, (_, shard) => [shard, replica])),
    describe: () => ({ problems: [], warnings: [] }),
  };
};

const ONLY_LEASE: Lease = { epoch: 1, held: () => true };

/** A replica that is alone has no dead one beside it. */
const inProcessClaims = (usages: Usages, answers: KeptAnswers): Claims => {
  const order = new WaitQueue();
  return {
    joinWaiting: async (pool) => order.join(pool),
    leaveWaiting: async (place) => {
      order.leave(place);
    },
    waiting: async ({ uid }) => order.size(uid),
    admitClaim: async ({
      pool,
      owner = pool.owner,
      instance,
      limit,
      idle,
      place,
      from,
      request,
      open,
      ...entry
    }) => {
      const attempt = entry.attempt === undefined ? {} : { attempt: entry.attempt };
      const opened = request && open && (await answers.open(request));
      if (opened && opened.kind !== 'new') return { opened };
      if (from !== undefined) usages.withdraw(owner, 'sandboxes', { ...attempt, name: from });
      if (order.before(pool.uid, place) >= idle) {
        if (place) order.comeBack(place);
        return 'not-its-turn';
      }
      if (!usages.reserve(owner, 'sandboxes', { ...attempt, name: instance, amount: 1, limit }))
        return 'full';
      if (place) order.leave(place);
      return 'admitted';
    },
  };
};

/** One replica tells each event once. None is known from before it began. */
const inProcessEvents = (clock: Clock): EventLog => {
  const ring = new EventRing(clock.now() * EVENT_NUMBERS_PER_MS);
  return {
    publishEvent: (event, _key, told) => {
      const id = Math.max(ring.last + 1, event.at * EVENT_NUMBERS_PER_MS);
      ring.add({ id, event });
      told?.(id);
    },
    followEvents: (...call) => ring.follow(...call),
  };
};

const inProcessRevocations = (): Revocations => {
  const { tell, follow } = inProcessChannel<string>();
  return { publishRevocation: tell, subscribeRevocations: follow };
};

const inProcessDemand = (): DemandSignals => {
  const { tell, follow } = inProcessChannel<DemandSignal>();
  return { publishDemand: tell, subscribeDemand: follow };
};

const inProcessChannel = <T>() => {
  const followers = new Set<(word: T) => void>();
  return {
    tell: (word: T): void => {
      for (const report of followers) report(word);
    },
    follow: (report: (word: T) => void): (() => void) => {
      followers.add(report);
      return () => {
        followers.delete(report);
      };
    },
  };
};

/** Who waits for which pool, each by the number under which it came. */
class WaitQueue {
  readonly #pools = new Map<string, Set<number>>();
  #last = 0;

  join(pool: WaitedPool): WaitingPlace {
    if (this.size(pool.uid) >= MAX_WAITING_OF_POOL)
      throw tooManyWaiting('for this pool', MAX_WAITING_OF_POOL);
    this.#last += 1;
    const place = { pool, id: String(this.#last) };
    this.comeBack(place);
    return place;
  }

  /** Stands again where it stood. */
  comeBack({ pool: { uid }, id }: WaitingPlace): void {
    this.#pools.set(uid, (this.#pools.get(uid) ?? new Set()).add(Number(id)));
  }

  leave({ pool: { uid }, id }: WaitingPlace): void {
    const waiting = this.#pools.get(uid);
    waiting?.delete(Number(id));
    if (waiting?.size === 0) this.#pools.delete(uid);
  }

  size(uid: string): number {
    return this.#pools.get(uid)?.size ?? 0;
  }

  /** Counts those that wait before it; before one that does not wait all do. */
  before(uid: string, place: WaitingPlace | undefined): number {
    const own = place === undefined ? Number.POSITIVE_INFINITY : Number(place.id);
    let count = 0;
    for (const number of this.#pools.get(uid) ?? []) if (number < own) count += 1;
    return count;
  }
}
