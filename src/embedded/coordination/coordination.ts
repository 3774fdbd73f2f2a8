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
import { tooManyWaiting } from '../../model/limit-refusals.ts';
import type {
  Confirmation,
  QuotaEntry,
  Quotas,
  ReservedName,
} from '../../contracts/coordination/quotas.ts';
import type { Revision } from '../../model/identifiers.ts';
import { eachResource, type QuotaResource } from '../../model/pools/quota.ts';
import { isNewer } from '../../model/mirror/revision-order.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';

/** For a single replica. The caller restores usage from the records at start. */
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
    askReplica: async () => undefined,
    answerReplicas: () => () => undefined,
    issueToken: async (...call) => tokens.issue(...call),
    peekToken: async (token) => tokens.peek(token),
    redeemToken: async (token) => tokens.redeem(token),
    openRequest: (mark) => answers.open(mark),
    placeRequest: (...call) => answers.place(...call),
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

/** A single replica has no dead peers. */
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
      attempt = '',
    }) => {
      const opened = request && open && (await answers.open(request));
      if (opened && (opened.kind !== 'new' || opened.place !== undefined)) return { opened };
      if (from !== undefined) usages.withdraw(owner, 'sandboxes', { attempt, name: from });
      if (order.before(pool.uid, place) >= idle) {
        if (place) order.comeBack(place);
        return 'not-its-turn';
      }
      if (!usages.reserve(owner, 'sandboxes', { attempt, name: instance, amount: 1, limit }))
        return 'full';
      if (place) order.leave(place);
      return 'admitted';
    },
  };
};

/** Events from before the start are unknown. */
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

/** By pool, with numbers in the queue. */
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

  /** At its old position. */
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

  /** Counts all if the place is not queued. */
  before(uid: string, place: WaitingPlace | undefined): number {
    const own = place === undefined ? Number.POSITIVE_INFINITY : Number(place.id);
    let count = 0;
    for (const number of this.#pools.get(uid) ?? []) if (number < own) count += 1;
    return count;
  }
}

interface Part {
  settled: number;
  revision: Revision;
  readonly open: Map<string, number>;
}

interface Usage {
  total: number;
  readonly parts: Map<string, Part>;
}

/** The users' limits bound its size. */
export class Usages {
  readonly #usages = new Map<string, Usage>();

  reserve(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount, limit, attempt = '' }: QuotaEntry,
  ): boolean {
    const usage = this.#usage(tenant, resource);
    const known = usage.parts.get(name);
    const part: Part = {
      settled: known?.settled ?? 0,
      revision: known?.revision ?? '',
      open: new Map(known?.open).set(attempt, amount),
    };
    const grown = amountOf(part) - amountOf(known);
    if (grown > 0 && usage.total + grown > limit) return false;
    this.#put(usage, name, part);
    return true;
  }

  withdraw(tenant: Tenant, resource: QuotaResource, { name, attempt = '' }: ReservedName): void {
    this.#change(usageKey(tenant, resource), name, ({ open, ...part }) => ({
      ...part,
      open: without(open, attempt),
    }));
  }

  confirm(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount, revision, attempt = '' }: Confirmation,
  ): void {
    this.#change(usageKey(tenant, resource), name, (part) => ({
      ...part,
      open: without(part.open, attempt),
      ...(isNewer(revision, part.revision) ? { settled: amount, revision } : {}),
    }));
  }

  restore(
    tenant: Tenant,
    resource: QuotaResource,
    { name, amount }: { readonly name: string; readonly amount: number },
  ): void {
    this.#put(this.#usage(tenant, resource), name, {
      settled: amount,
      revision: '',
      open: new Map(),
    });
  }

  remove(tenant: Tenant, resource: QuotaResource, name: string): void {
    this.#change(usageKey(tenant, resource), name, () => ({
      settled: 0,
      revision: '',
      open: new Map(),
    }));
  }

  total(tenant: Tenant, resource: QuotaResource): number {
    return this.#usages.get(usageKey(tenant, resource))?.total ?? 0;
  }

  isReserved(tenant: Tenant, resource: QuotaResource, { name, attempt }: ReservedName): boolean {
    const open = this.#usages.get(usageKey(tenant, resource))?.parts.get(name)?.open;
    return open !== undefined && (attempt === undefined ? open.size > 0 : open.has(attempt));
  }

  #usage(tenant: Tenant, resource: QuotaResource): Usage {
    const key = usageKey(tenant, resource);
    const usage = this.#usages.get(key) ?? { total: 0, parts: new Map<string, Part>() };
    this.#usages.set(key, usage);
    return usage;
  }

  #change(key: string, name: string, change: (part: Part) => Part): void {
    const usage = this.#usages.get(key);
    const part = usage?.parts.get(name);
    if (!usage || !part) return;
    this.#put(usage, name, change(part));
    if (usage.parts.size === 0) this.#usages.delete(key);
  }

  #put(usage: Usage, name: string, part: Part): void {
    usage.total += amountOf(part) - amountOf(usage.parts.get(name));
    if (part.open.size === 0 && part.settled === 0 && part.revision === '')
      usage.parts.delete(name);
    else usage.parts.set(name, part);
  }
}

/** Reservations end with the process, so none is left to settle. */
export const inProcessQuotas = (usages: Usages): Quotas => ({
  reserve: async (tenant, resource, entry) => usages.reserve(tenant, resource, entry),
  withdraw: async (tenant, resource, reserved) => usages.withdraw(tenant, resource, reserved),
  confirm: async (tenant, resource, confirmation) => usages.confirm(tenant, resource, confirmation),
  stillReserved: async (tenant, resource, reserved) =>
    usages.isReserved(tenant, resource, reserved),
  release: async (tenant, resource, name) => usages.remove(tenant, resource, name),
  used: async (tenant) => eachResource((resource) => usages.total(tenant, resource)),
  whenKnown: async () => undefined,
  expectUse: () => undefined,
  restore: async (tenant, resource, part) => usages.restore(tenant, resource, part),
  unreconciled: async () => [],
  parts: async () => [],
  reconcile: async () => undefined,
});

const amountOf = (part: Part | undefined): number =>
  part ? Math.max(part.settled, ...part.open.values()) : 0;

const without = (open: ReadonlyMap<string, number>, attempt: string): Map<string, number> => {
  const left = new Map(open);
  left.delete(attempt);
  return left;
};

const usageKey = (tenant: Tenant, resource: QuotaResource): string =>
  `${resource}/${tenantKey(tenant)}`;
