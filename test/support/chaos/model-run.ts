import type { Dice } from '../builders/hostile-values.ts';
import { MadeUpRun } from './a-run.ts';
import type { Answer, Asked } from './history.ts';

const REPLICAS = 4;
const QUOTA = 3;

/** A random run of a correct system: calls overlap, answers get lost, Pods are deleted by hand. */
export class ModelRun {
  readonly run = new MadeUpRun();
  readonly running = new Set<string>();
  readonly idle = new Set<string>();
  readonly deleted = new Set<string>();
  readonly #dice: Dice;
  readonly #starting = new Set<string>();
  readonly #closing = new Set<string>();
  readonly #byKey = new Map<string, string>();
  #born = 0;

  constructor(dice: Dice, steps: number) {
    this.#dice = dice;
    this.run.quota = QUOTA;
    this.run.pool('p', { replicas: REPLICAS });
    for (let left = steps; left > 0; left -= 1) {
      this.run.at(this.run.now + dice.below(30));
      this.#step();
    }
  }

  #step(): void {
    const dice = this.#dice;
    const roll = dice.below(10);
    if (roll < 3) this.#claim();
    else if (roll < 5) this.#delete();
    else if (roll < 7) this.#look();
    else if (roll < 8) this.#restock();
    else if (dice.chance(0.1)) this.#removeByHand();
    else this.#close();
  }

  #claim(): void {
    const key = this.#dice.chance(0.4) ? `key-${this.#dice.below(5)}` : undefined;
    const asked = { what: 'claim', pool: 'p', key } as const;
    const before = key === undefined ? undefined : this.#byKey.get(key);
    const [id] = this.idle;
    const refusal =
      id === undefined
        ? 'POOL_EXHAUSTED'
        : this.running.size >= QUOTA
          ? 'QUOTA_EXCEEDED'
          : undefined;
    if (before !== undefined && this.running.has(before))
      this.#call(asked, { status: 201, id: before, shows: 'Running' });
    else if (refusal !== undefined || id === undefined)
      this.#call(asked, { status: 429, errorCode: refusal ?? '' });
    else this.#give(asked, id);
  }

  #give(asked: Asked & { readonly what: 'claim' }, id: string): void {
    const { key } = asked;
    this.idle.delete(id);
    this.running.add(id);
    if (key !== undefined) this.#byKey.set(key, id);
    this.#call(asked, { status: 201, id, shows: 'Running' });
    this.run.claimed(id, {
      claimedAt: new Date(this.run.now).toISOString(),
      mark: key ?? `of ${id}`,
    });
  }

  #delete(): void {
    const [id] = this.running;
    if (id === undefined) return;
    this.#gone(id);
    if (this.#call({ what: 'delete', id }, { status: 200 })) this.deleted.add(id);
    this.run.podGone(id);
  }

  #removeByHand(): void {
    const [id] = this.running;
    if (id === undefined) return;
    this.#gone(id);
    this.run.disturbed({ from: this.run.now - 5, removed: [id] }).podGone(id);
  }

  #gone(id: string): void {
    this.running.delete(id);
    this.#closing.add(id);
  }

  #look(): void {
    const ids = [...this.running, ...this.#closing];
    const id = ids[this.#dice.below(ids.length)];
    if (id === undefined) return;
    const isRunning = this.running.has(id);
    if (this.#dice.chance(0.5))
      this.#call(
        { what: 'get', id },
        isRunning ? { status: 200, shows: 'Running' } : { status: 404 },
      );
    else this.#call({ what: 'exec', id }, { status: isRunning ? 200 : 409 });
  }

  #restock(): void {
    for (const id of this.#starting) {
      this.#starting.delete(id);
      this.idle.add(id);
      this.run.ready(id, `node-${this.#dice.below(3)}`);
    }
    if (this.idle.size + this.running.size >= REPLICAS) return;
    const id = `i${(this.#born += 1)}`;
    this.#starting.add(id);
    this.run.born(id);
  }

  #close(): void {
    for (const id of this.#closing) this.run.recordGone(id);
    this.#closing.clear();
  }

  /** Returns whether the answer arrived. */
  #call(asked: Asked, answer: Answer): boolean {
    const arrives = !this.#dice.chance(0.15);
    this.run.call(asked, arrives ? answer : undefined, {
      replica: this.#dice.below(3),
      invoked: this.run.now - this.#dice.below(40),
      completed: this.run.now + 1 + this.#dice.below(40),
    });
    return arrives;
  }
}
