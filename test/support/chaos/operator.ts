import type { Dice } from '../builders/hostile-values.ts';
import { atConsole } from '../harness/a-console-session.ts';
import { OPERATOR, type Arena } from './arena.ts';
import type { Recorder } from './recorder.ts';

export interface OperatorDeps {
  readonly arena: Pick<Arena, 'contenders'>;
  readonly recorder: Recorder;
  readonly dice: Dice;
}

const LOOK_EVERY_MS = 150;
/** Links and login attempts are limited. */
const LOG_IN_EVERY_MS = 5_000;
const ANSWER_MS = 3_000;

/**
 * At changing replicas. By the id's last digit one of sixteen is denied and one expires, but no
 * deletion of a pool: the end of a run needs it.
 */
export class Operator {
  readonly #deps: OperatorDeps;
  #working: Promise<void> | undefined;
  #isOver = false;
  #session: Readonly<Record<string, string>> | undefined;
  #triedAt = -Infinity;

  constructor(deps: OperatorDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      await this.#round().catch(() => undefined);
      await new Promise((resolve) => {
        setTimeout(resolve, LOOK_EVERY_MS);
      });
    }
  }

  async #round(): Promise<void> {
    const session = await this.#loggedIn();
    if (!session) return;
    const { contenders } = this.#deps.arena;
    const shown = await contenders[this.#someReplica()]
      ?.client(OPERATOR)
      .get('/approvals?status=pending&limit=50', {
        headers: session,
        signal: AbortSignal.timeout(ANSWER_MS),
      });
    this.#heed(shown?.status);
    for (const { id, operation } of shown?.json.items ?? []) {
      const approval = String(id);
      if (operation === 'deletePool') await this.#decide(approval, 'approve', session);
      else if (!approval.endsWith('f'))
        await this.#decide(approval, approval.endsWith('0') ? 'deny' : 'approve', session);
    }
  }

  async #decide(
    approval: string,
    decision: 'approve' | 'deny',
    session: Readonly<Record<string, string>>,
  ): Promise<void> {
    const replica = this.#someReplica();
    const port = this.#deps.arena.contenders[replica]?.replica.port;
    const answer = await this.#deps.recorder.send(
      OPERATOR,
      replica,
      { what: 'decide', approval, decision },
      { ...session, Origin: `http://127.0.0.1:${port}` },
    );
    this.#heed(answer?.status);
  }

  async #loggedIn(): Promise<Readonly<Record<string, string>> | undefined> {
    if (this.#session) return this.#session;
    if (performance.now() < this.#triedAt + LOG_IN_EVERY_MS) return undefined;
    this.#triedAt = performance.now();
    const at = this.#deps.arena.contenders[this.#someReplica()];
    if (!at) return undefined;
    const run = { dataDir: at.replica.dataDir, run: at.replica };
    this.#session = (await inTime(atConsole(run, at.client(OPERATOR)))).headers;
    return this.#session;
  }

  #heed(status: number | undefined): void {
    if (status === 401 || status === 403) this.#session = undefined;
  }

  #someReplica(): number {
    return this.#deps.dice.below(this.#deps.arena.contenders.length);
  }
}

/** A stalled replica may never answer. */
const inTime = async <T>(work: Promise<T>): Promise<T> => {
  work.catch(() => undefined);
  const late = new Promise<never>((_, reject) => {
    setTimeout(reject, ANSWER_MS, new Error('no answer in time')).unref();
  });
  return await Promise.race([work, late]);
};
