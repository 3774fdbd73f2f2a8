import { randomUUID } from 'node:crypto';
import type { Dice } from '../../builders/hostile-values.ts';
import { Hands, pause } from '../hands.ts';
import type { ClaimAsked } from '../history.ts';
import type { Recorder } from '../recorder.ts';
import type { Effects } from './fleet-verdict.ts';

export interface FleetLoadDeps {
  readonly recorder: Recorder;
  readonly dice: Dice;
  readonly managers: number;
  readonly clients: number;
  readonly pools: readonly string[];
  readonly withFiles: ReadonlySet<string>;
  /** As some replica lists them, with the name of the claim. */
  readonly running: () => Promise<readonly { readonly id: string; readonly name?: string }[]>;
}

export const USER = 'default';
const EFFECTS_FILE = '/tmp/effects';
const TIDY_EVERY_MS = 3_000;
const MOST_KEPT = 24;

/**
 * At any replica of a manager. Repetitions share their claim's name; each command leaves its own
 * mark.
 */
export class FleetLoad {
  readonly kept = new Set<string>();
  readonly effects: Effects[] = [];
  readonly #deps: FleetLoadDeps;
  readonly #hands: Hands;
  readonly #underWay = new Set<string>();
  #workers: Promise<void>[] = [];

  constructor(deps: FleetLoadDeps) {
    this.#deps = deps;
    this.#hands = new Hands({ ...deps, replicas: deps.managers });
  }

  get claims(): number {
    return this.#hands.claims;
  }

  start(): void {
    const hands = this.#hands;
    this.#workers = Array.from({ length: this.#deps.clients }, () =>
      hands.again(() => this.#round()),
    );
    this.#workers.push(hands.again(this.#tidyRound()));
  }

  /** Resolves once every client has finished its round. */
  async stop(): Promise<void> {
    this.#hands.isOver = true;
    await Promise.all(this.#workers);
  }

  async #round(): Promise<void> {
    const { dice } = this.#hands;
    const name = randomUUID();
    this.#underWay.add(name);
    try {
      await this.#claimAndUse({
        what: 'claim',
        pool: this.#deps.pools[dice.below(this.#deps.pools.length)] ?? '',
        name,
        ...(dice.chance(0.6) ? { key: randomUUID() } : {}),
        ...(dice.chance(0.1) ? { waitSeconds: 1 + dice.below(3) } : {}),
      });
    } finally {
      this.#underWay.delete(name);
    }
  }

  async #claimAndUse(asked: ClaimAsked): Promise<void> {
    const hands = this.#hands;
    const { dice } = hands;
    const isRepeated = asked.key !== undefined && dice.chance(0.2);
    const [id, twin] = await Promise.all([
      hands.claim(USER, asked),
      isRepeated ? hands.claim(USER, asked) : undefined,
    ]);
    if (twin !== undefined && twin !== id) await hands.end(USER, twin);
    if (id === undefined) return await pause(50 + dice.below(200));
    if (dice.chance(0.3)) await this.#leaveMarks(id);
    else if (dice.chance(0.4)) await hands.send(USER, { what: 'get', id });
    if (asked.key !== undefined && dice.chance(0.1)) {
      const again = await hands.claim(USER, asked);
      if (again !== undefined && again !== id) await hands.end(USER, again);
    }
    if (dice.chance(0.01) && this.kept.size < MOST_KEPT) this.kept.add(id);
    else await hands.end(USER, id);
  }

  async #leaveMarks(id: string): Promise<void> {
    if (!this.#deps.withFiles.has(id.split('.')[0] ?? '')) return;
    const hands = this.#hands;
    const sent: { readonly mark: string; readonly isAnswered: boolean }[] = [];
    for (let left = 1 + hands.dice.below(2); left > 0; left -= 1) {
      const mark = randomUUID();
      const command = `echo ${mark} >>${EFFECTS_FILE}`;
      const answer = await hands.send(USER, { what: 'exec', id, command });
      sent.push({ mark, isAnswered: answer?.status === 200 });
    }
    const command = `cat ${EFFECTS_FILE}; echo end`;
    const read = await hands.insist(USER, { what: 'exec', id, command });
    const lines = read?.json.stdout?.split('\n') ?? [];
    if (read?.status === 200 && lines.at(-2) === 'end')
      this.effects.push({ id, sent, found: lines.slice(0, -2) });
  }

  /** Ends sandboxes of claims whose answer was lost. */
  #tidyRound(): () => Promise<void> {
    let before = new Set<string>();
    return async () => {
      await this.#hands.idle(TIDY_EVERY_MS);
      const running = await this.#deps.running();
      const unknown = running.filter(
        ({ id, name = '' }) =>
          !this.#hands.held.has(id) && !this.kept.has(id) && !this.#underWay.has(name),
      );
      for (const { id } of unknown) if (before.has(id)) await this.#hands.end(USER, id);
      before = new Set(unknown.map(({ id }) => id));
    };
  }
}
