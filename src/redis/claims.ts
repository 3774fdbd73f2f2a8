import { randomUUID } from 'node:crypto';
import {
  MAX_WAITING_OF_POOL,
  type Admission,
  type ClaimEntry,
  type Claims,
  type WaitedPool,
  type WaitingPlace,
} from '../contracts/coordination/claims.ts';
import type { Log } from '../contracts/log.ts';
import { tooManyWaiting } from '../model/limit-refusals.ts';
import { unavailable } from '../model/refusals.ts';
import { holderOf, NO_LIMIT, type RedisQuotas } from './quotas.ts';
import type { RedisPlace } from './redis-link.ts';
import type { Begun, RedisRequests } from './requests.ts';

/** Others skip a replica's waiters after three missed heartbeats. */
const BEAT_MS = 900;

export interface RedisClaimsDeps extends RedisPlace {
  readonly log: Log;
  readonly replica: string;
  readonly requests: Pick<RedisRequests, 'ownerOf' | 'begin' | 'opened'>;
  readonly quotas: Pick<RedisQuotas, 'unknown'>;
}

interface Waiter {
  readonly member: string;
  /** By Redis' clock, in µs since the epoch; '' until admitted. */
  at: string;
  /** Heartbeats do not add it while its admission is running or done. */
  state: 'waits' | 'tries' | 'admitted';
  /** The answer to its admission is lost, so it may be in the order. */
  isUnsure: boolean;
}

interface OwnWaiters {
  readonly pool: WaitedPool;
  readonly waiters: Map<string, Waiter>;
  /** A running heartbeat may add waiters that have left; the next one removes them. */
  isTold: boolean;
}

interface ClaimInRedis {
  /** Opened by the script of the claim. */
  readonly begun: Begun | undefined;
  /** Replica of the open request. */
  readonly holder: string | undefined;
  readonly waiter: Pick<Waiter, 'member' | 'at'> | undefined;
}

/** Claims in Redis, one script each. From `start()` on, heartbeats keep its waiters alive. */
export class RedisClaims implements Claims {
  readonly #deps: RedisClaimsDeps;
  /** Bounded by MAX_WAITING_OF_POOL and by the callers. */
  readonly #pools = new Map<string, OwnWaiters>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RedisClaimsDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      void this.beat();
    }, BEAT_MS).unref();
  }
  stop(): void {
    clearInterval(this.#timer);
  }

  async joinWaiting(pool: WaitedPool): Promise<WaitingPlace> {
    const { link, replica } = this.#deps;
    // A flood of refused claims must not reach Redis.
    if (this.#waitingHere(pool) >= MAX_WAITING_OF_POOL)
      throw tooManyWaiting('for this pool', MAX_WAITING_OF_POOL);
    const id = randomUUID();
    const waiter: Waiter = { member: `${id}|${replica}`, at: '', state: 'waits', isUnsure: false };
    this.#ownOf(pool).waiters.set(id, waiter);
    const place = { pool, id };
    try {
      const [answer, at] = await link.run('join_waiting', this.#keys(pool), [
        id,
        replica,
        MAX_WAITING_OF_POOL,
      ]);
      if (answer !== 'ok') throw tooManyWaiting('for this pool', MAX_WAITING_OF_POOL);
      waiter.at = String(at);
      return place;
    } catch (error) {
      this.#forget(place);
      this.#ownOf(pool); // it may have been added despite the error
      throw error;
    }
  }

  /** With a place in the order. */
  #waitingHere({ uid }: WaitedPool): number {
    let count = 0;
    for (const { at, state } of this.#pools.get(uid)?.waiters.values() ?? [])
      if (at !== '' && state !== 'admitted') count += 1;
    return count;
  }

  async leaveWaiting(place: WaitingPlace): Promise<void> {
    const waiter = this.#forget(place);
    if (!waiter || waiter.state === 'admitted') return;
    if (waiter.isUnsure) this.#ownOf(place.pool);
    try {
      await this.#deps.link.run(
        'leave_waiting',
        [this.#deps.keys.waiting(place.pool)],
        [waiter.member],
      );
    } catch (error) {
      this.#ownOf(place.pool);
      throw error;
    }
  }

  /** Also if empty, for the next heartbeat. */
  #ownOf(pool: WaitedPool): OwnWaiters {
    const own = this.#pools.get(pool.uid) ?? {
      pool,
      waiters: new Map<string, Waiter>(),
      isTold: false,
    };
    this.#pools.set(pool.uid, own);
    return own;
  }

  async waiting(pool: WaitedPool): Promise<number> {
    const [, count] = await this.#deps.link.run('count_waiting', this.#keys(pool), []);
    return Number(count);
  }

  async admitClaim(entry: ClaimEntry): Promise<Admission> {
    const { requests } = this.#deps;
    const { request, open } = entry;
    const begun = request && open && requests.begin(request, open);
    if (begun && 'kind' in begun) return { opened: begun };
    const holder = request && requests.ownerOf(request);
    if (request && holder === undefined) throw takenOver();
    const waiter = this.#waiterOf(entry);
    const run = this.#admit(entry, { begun, holder, waiter });
    const [answer, ...more] = await (waiter ? triedWith(waiter, run) : run);
    if (answer === 'opened' && request) return { opened: requests.opened(request, more) };
    if (answer === 'ok' && waiter) waiter.state = 'admitted';
    return this.#admissionOf(answer, entry);
  }

  #admit(
    entry: ClaimEntry,
    { begun, holder = '', waiter = NO_WAITER }: ClaimInRedis,
  ): Promise<readonly unknown[]> {
    const { link, keys, replica } = this.#deps;
    const { pool, owner = pool.owner, request, from = '', looked = false } = entry;
    const { keys: requestKeys, args: requestArgs } = begun ?? {
      keys: request ? [keys.request(owner, request.key)] : [],
      args: [],
    };
    return link.run(
      'admit_claim',
      [
        keys.usage(owner, 'sandboxes'),
        keys.pendingReservations(owner, 'sandboxes'),
        ...this.#keys(pool),
        ...requestKeys,
      ],
      [
        holderOf(replica, entry.attempt),
        entry.instance,
        Math.min(entry.limit, NO_LIMIT),
        from,
        holder,
        entry.idle,
        waiter.member,
        waiter.at,
        looked ? 'looked' : '',
        ...requestArgs,
      ],
    );
  }

  #admissionOf(answer: unknown, entry: ClaimEntry): Admission {
    switch (answer) {
      case 'ok':
        return 'admitted';
      case 'full':
        return 'full';
      case 'look':
        return 'look-first';
      case 'taken':
        throw takenOver();
      case 'unknown':
        throw this.#deps.quotas.unknown(entry.owner ?? entry.pool.owner);
      default:
        return 'not-its-turn';
    }
  }

  #waiterOf({ pool, place }: ClaimEntry): Waiter | undefined {
    return place && this.#pools.get(pool.uid)?.waiters.get(place.id);
  }

  /**
   * Never rejects: waiters that others consider dead get their place back with the next heartbeat.
   */
  async beat(): Promise<void> {
    const beats = await Promise.allSettled(
      [...this.#pools.values()].filter(({ isTold }) => !isTold).map((own) => this.#tell(own)),
    );
    const failed = beats.filter(({ status }) => status === 'rejected').length;
    if (failed > 0)
      this.#deps.log.debug({ failed, of: beats.length }, 'waiting-claims-not-published');
  }

  async #tell(own: OwnWaiters): Promise<void> {
    const { link, replica } = this.#deps;
    const { pool, waiters } = own;
    let told = 0;
    own.isTold = true;
    try {
      await link.run('beat_waiting', this.#keys(pool), () => {
        told = waiters.size;
        return [
          replica,
          ...[...waiters.values()].flatMap(({ member, at, state }) =>
            state === 'admitted' ? [] : [member, state === 'waits' ? at : ''],
          ),
        ];
      });
      if (told === 0 && waiters.size === 0) this.#pools.delete(pool.uid);
    } finally {
      own.isTold = false;
    }
  }

  #keys(pool: WaitedPool): readonly [string, string] {
    return [this.#deps.keys.waiting(pool), this.#deps.keys.waitingSeen(pool)];
  }

  #forget({ pool: { uid }, id }: WaitingPlace): Waiter | undefined {
    const own = this.#pools.get(uid);
    const waiter = own?.waiters.get(id);
    own?.waiters.delete(id);
    if (own?.waiters.size === 0 && !own.isTold) this.#pools.delete(uid);
    return waiter;
  }
}

/** For claims that do not wait. */
const NO_WAITER = { member: '', at: '' } as const;

/**
 * Excludes the waiter from heartbeats during its admission, and marks it as unsure if the answer is
 * lost.
 */
const triedWith = async <T>(waiter: Waiter, admission: Promise<T>): Promise<T> => {
  waiter.state = 'tries';
  try {
    return await admission;
  } catch (error) {
    waiter.isUnsure = true;
    throw error;
  } finally {
    waiter.state = 'waits';
  }
};

const takenOver = () => unavailable('the request was taken over by another replica; repeat it');
