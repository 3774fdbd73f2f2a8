import {
  MAX_WAITING_OF_POOL,
  type WaitedPool,
  type WaitingPlace,
} from '../../contracts/coordination/claims.ts';
import { tooManyWaiting } from '../../model/limit-refusals.ts';

/** Who waits for which pool, each by the number under which it came. */
export class WaitQueue {
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
