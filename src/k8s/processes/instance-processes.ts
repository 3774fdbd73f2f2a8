import { randomBytes } from 'node:crypto';
import { signalNumber } from '../../lib/signal-names.ts';
import { Slices } from '../../lib/loop-slices.ts';
import { InstanceGone, OutcomeUnknown, NotJoinable } from '../../contracts/sandbox-driver.ts';
import {
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
  type ProcessDriver,
  type ProcessInput,
  type ProcessOrder,
  type StartedReading,
} from '../../contracts/processes.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import {
  ENDED_PROCESSES,
  INPUT_BYTES,
  type ProcessFact,
  type ProcessId,
  type ProcessOutput,
  type ProcessSignal,
} from '../../model/process.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { agentOrder } from '../streams/agent-order.ts';
import {
  ProcessCalls,
  type ProcessCallsDeps,
  type ProcessPlace,
  type ProcessQuestion,
} from './process-calls.ts';
import { followOutput, piecesOf, type BegunReading } from './process-output.ts';
import { readProcess, toldOf } from './process-record.ts';

export interface InstanceProcessesDeps extends ProcessCallsDeps {
  /** As `InstanceAccess.enterAny`. */
  readonly enter: <T>(
    id: InstanceId,
    way: (containers: readonly PodTarget[]) => Promise<T>,
  ) => Promise<T>;
}

/** Bytes of a sandbox's list; a process's arguments may be long. */
const LONGEST_LIST = 16 << 20;
/** Work on a list goes on for so long before others have the event loop. */
const SLICE_MS = 2;

/**
 * The processes in the Pods of instances. The agent in a container starts each, and stays with it
 * as its holder, which keeps its record and the end of its output. So any replica answers for any
 * process, and none of them is needed for it to go on.
 */
export class InstanceProcesses implements ProcessDriver {
  readonly provided = true;
  readonly #deps: InstanceProcessesDeps;
  readonly #calls: ProcessCalls;
  /** Where starts in a Pod, and inputs of a process, wait for the ones before them. */
  readonly #turns = new PodTurns();

  constructor(deps: InstanceProcessesDeps) {
    this.#deps = deps;
    this.#calls = new ProcessCalls(deps);
  }

  async start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact> {
    const question = this.#startOf(order);
    return await this.#enter(id, async (containers) => {
      const place = placeOf(order, containers);
      const answer = await this.#inTurnOf(place, () => this.#calls.ask(place, question));
      const fact = factsIn(answer)[0];
      if (!fact) throw unsaid();
      return fact;
    });
  }

  async run(id: InstanceId, order: ProcessOrder, { pace }: OutputRequest): Promise<StartedReading> {
    const question = this.#startOf(order, 'follow', '1', ...(pace ? ['pace', '1'] : []));
    return await this.#enter(id, async (containers) => {
      const place = placeOf(order, containers);
      const stop = new AbortController();
      const { fact, pieces } = await this.#inTurnOf(place, () =>
        this.#calls.inTime(stop, () => this.#begin(place, question, stop)),
      );
      const leave = (): void => stop.abort(new Error('nobody reads it any more'));
      const begun = { pieces, leave };
      return {
        fact,
        output: (signal) => followOutput(this.#calls, place, { pace, signal, begun }),
        leave,
      };
    });
  }

  #inTurnOf<T>({ target }: ProcessPlace, start: () => Promise<T>): Promise<T> {
    return this.#turns.take(`start ${target.uid}`, start);
  }

  /** Starts a process, and reads on as it goes. */
  async #begin(
    place: ProcessPlace,
    question: ProcessQuestion,
    { signal }: AbortController,
  ): Promise<{ readonly fact: ProcessFact; readonly pieces: BegunReading['pieces'] }> {
    const pieces = piecesOf(await this.#calls.begin(place, question, signal));
    const first = await pieces.next();
    const piece = first.done === true ? undefined : first.value;
    const fact = piece?.kind === 'record' ? readProcess(piece.record) : undefined;
    if (fact) return { fact, pieces };
    await pieces.return();
    throw unsaid();
  }

  /** The latest start first. */
  list(id: InstanceId): Promise<readonly ProcessFact[]> {
    return this.#enter(id, async (containers) => {
      const known = new Map<ProcessId, ProcessFact>();
      const slices = new Slices(SLICE_MS);
      const question = { tokens: ['processes'], limit: LONGEST_LIST };
      const ask = (target: PodTarget): ReturnType<ProcessCalls['ask']> =>
        this.#calls.ask({ target }, question);
      for (const records of await Promise.all(containers.map(ask)))
        // Whoever is in the sandbox may say long ones: others have the event loop in between.
        for (const record of records) {
          const fact = readProcess(record);
          if (fact) known.set(fact.processId, fact);
          if (slices.usedUp) await slices.next();
        }
      return withoutForgotten([...known.values()]).sort((a, b) => b.startedAt - a.startedAt);
    });
  }

  find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined> {
    return this.#enter(id, async (containers) => (await this.#find(containers, processId))?.fact);
  }

  async *output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    const place = await this.#enter(id, (containers) => this.#place(containers, processId));
    yield* followOutput(this.#calls, place, request);
  }

  write(id: InstanceId, processId: ProcessId, { bytes, signal }: ProcessInput): Promise<void> {
    if (bytes.length > INPUT_BYTES) throw new Error(`more than ${INPUT_BYTES} bytes of input`);
    return this.#inTurn(id, processId, {
      tokens: ['input'],
      body: bytes,
      unless: signal,
    });
  }

  closeInput(id: InstanceId, processId: ProcessId): Promise<void> {
    return this.#inTurn(id, processId, { tokens: ['eof'] });
  }

  async resize(
    id: InstanceId,
    processId: ProcessId,
    { cols, rows }: { readonly cols: number; readonly rows: number },
  ): Promise<void> {
    await this.#act(id, processId, ['resize', 'columns', String(cols), 'rows', String(rows)]);
  }

  async signal(id: InstanceId, processId: ProcessId, name: ProcessSignal): Promise<void> {
    const number = signalNumber(name);
    await this.#act(id, processId, ['signal', 'number', number, 'key', newKey()]);
  }

  remove(id: InstanceId, processId: ProcessId): Promise<void> {
    return this.#enter(id, async (containers) => {
      const place = await this.#place(containers, processId);
      await this.#calls.ask(place, { tokens: ['remove-process'], removes: true });
    });
  }

  #startOf(order: ProcessOrder, ...more: readonly string[]): ProcessQuestion {
    requireWithoutNul(order);
    const { tty, timeoutMs, argv, cwd, env } = order;
    return {
      tokens: [
        'start',
        ...(order.stdin ? ['stdin', '1'] : []),
        ...(tty ? ['columns', String(tty.cols), 'rows', String(tty.rows)] : []),
        ...(timeoutMs === undefined ? [] : ['timeout', String(Math.max(1, Math.ceil(timeoutMs)))]),
        ...more,
      ],
      body: agentOrder({ argv, cwd, env, told: toldOf(order, this.#deps.clock.now()) }),
    };
  }

  async #inTurn(id: InstanceId, processId: ProcessId, question: ProcessQuestion): Promise<void> {
    await this.#enter(id, async (containers) => {
      const place = await this.#place(containers, processId);
      const tokens = [...question.tokens, 'key', newKey()];
      await this.#turns.take(
        `${place.target.uid} ${processId}`,
        () => this.#calls.ask(place, { ...question, tokens }),
        question.unless,
      );
    });
  }

  async #act(id: InstanceId, processId: ProcessId, tokens: readonly string[]): Promise<void> {
    await this.#enter(id, async (containers) =>
      this.#calls.ask(await this.#place(containers, processId), { tokens }),
    );
  }

  async #place(containers: readonly PodTarget[], processId: ProcessId): Promise<ProcessPlace> {
    const [only, ...others] = containers;
    if (only && others.length === 0) return { target: only, processId };
    const found = await this.#find(containers, processId);
    if (!found) throw new ProcessGone('there is no such process');
    return found.place;
  }

  async #find(
    containers: readonly PodTarget[],
    processId: ProcessId,
  ): Promise<{ readonly place: ProcessPlace; readonly fact: ProcessFact } | undefined> {
    const ask = async (target: PodTarget) => {
      const place = { target, processId };
      const records = await this.#calls.ask(place, { tokens: ['find'] }).catch((error: unknown) => {
        if (error instanceof ProcessGone) return [];
        throw error;
      });
      const fact = factsIn(records)[0];
      return fact && { place, fact };
    };
    const found = await Promise.all(containers.map(ask));
    return found.find((each) => each !== undefined);
  }

  #enter<T>(id: InstanceId, way: (containers: readonly PodTarget[]) => Promise<T>): Promise<T> {
    return this.#deps.enter(id, async (containers) => {
      if (containers.length === 0) throw new InstanceGone('its Pod is gone');
      return await way(containers);
    });
  }
}

const newKey = (): string => randomBytes(8).toString('hex');

const factsIn = (records: readonly Buffer[]): readonly ProcessFact[] =>
  records.flatMap((record) => readProcess(record) ?? []);

const unsaid = (): OutcomeUnknown =>
  new OutcomeUnknown('the sandbox does not say what became of the process');

/** Drops those that ended before so many others; the next start forgets them. */
const withoutForgotten = (facts: readonly ProcessFact[]): ProcessFact[] => {
  const ended = facts.filter(({ status }) => status === 'Exited');
  const forgotten = new Set(
    ended.sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0)).slice(ENDED_PROCESSES),
  );
  return facts.filter((fact) => !forgotten.has(fact));
};

const placeOf = (
  { processId, container }: ProcessOrder,
  containers: readonly PodTarget[],
): ProcessPlace => {
  const target =
    container === undefined
      ? containers[0]
      : containers.find((each) => each.container === container);
  if (!target) throw new ProcessRefused('container', `there is no container "${container ?? ''}"`);
  return { target, processId };
};

const requireWithoutNul = ({ argv, cwd, env }: ProcessOrder): void => {
  const has = (texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'));
  if (has(argv)) throw new ProcessRefused('command', 'an argument holds a NUL');
  if (has([cwd ?? ''])) throw new ProcessRefused('cwd', 'the folder holds a NUL');
  if (has(Object.entries(env ?? {}).flat())) throw new ProcessRefused('env', 'it holds a NUL');
};

/** Calls that wait for those before them, of one key. */
const MOST_WAITING = 128;
/** Milliseconds until a call whose turn has not come is given up. */
const PATIENCE_MS = 60_000;

/**
 * Has calls of one key carried out one after the other. Each is bounded by itself; those behind one
 * that hangs are given up, and then nothing of them was begun.
 */
export class PodTurns {
  readonly #patienceMs: number;
  readonly #last = new Map<string, { readonly over: Promise<void>; readonly waiting: number }>();

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  /**
   * Resolves as the work does. Rejects with NotJoinable where too many wait, or the turn does not
   * come in time, and with the signal's reason at an abort before that.
   */
  take<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const before = this.#last.get(key);
    const waiting = (before?.waiting ?? 0) + 1;
    if (waiting > MOST_WAITING)
      return Promise.reject(new NotJoinable('too many calls wait for the sandbox; try again'));
    if (signal?.aborted) return Promise.reject(signal.reason);
    return new Promise<T>((resolve, reject) => {
      let isGivenUp = false;
      const giveUp = (why: unknown): void => {
        isGivenUp = true;
        settle();
        reject(why);
      };
      const abort = (): void => giveUp(signal?.reason);
      const timer = setTimeout(
        () => giveUp(new NotJoinable('the sandbox does not come to this call in time; try again')),
        this.#patienceMs,
      );
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      signal?.addEventListener('abort', abort, { once: true });
      const over = (before?.over ?? Promise.resolve()).then(async () => {
        if (isGivenUp) return;
        settle();
        try {
          resolve(await work());
        } catch (error) {
          reject(error);
        }
      });
      this.#count(key, over, waiting);
    });
  }

  #count(key: string, over: Promise<void>, waiting: number): void {
    this.#last.set(key, { over, waiting });
    void over.then(() => {
      const last = this.#last.get(key);
      if (last?.over === over) this.#last.delete(key);
      else if (last) this.#last.set(key, { ...last, waiting: last.waiting - 1 });
    });
  }
}
