import { randomBytes } from 'node:crypto';
import { signalNumber } from '../../lib/signal-names.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import {
  ENDED_PROCESSES,
  INPUT_BYTES,
  type ProcessFact,
  type ProcessId,
  type ProcessOutput,
  type ProcessSignal,
} from '../../model/process.ts';
import {
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
  type ProcessDriver,
  type ProcessInput,
  type ProcessOrder,
  type StartedReading,
} from '../processes.ts';
import { OutcomeUnknown } from '../sandbox-driver.ts';
import { CallTurns } from './call-turns.ts';
import {
  ProcessCalls,
  type ProcessCallsDeps,
  type ProcessPlace,
  type ProcessQuestion,
} from './process-calls.ts';
import { followOutput, piecesOf, type BegunReading } from './process-output.ts';
import { readProcess } from './process-record.ts';

export interface AgentProcessesDeps<Target> extends ProcessCallsDeps<Target> {
  /** Rejects with InstanceGone. */
  readonly enter: <T>(
    id: InstanceId,
    way: (targets: readonly Target[]) => Promise<T>,
  ) => Promise<T>;
  readonly keyOf: (target: Target) => string;
}

/**
 * Each process has a *holder* (native/README.md) with its record and output, so any replica that
 * finds the holder can answer.
 */
export abstract class AgentProcesses<Target> implements ProcessDriver {
  readonly provided = true;
  protected readonly calls: ProcessCalls<Target>;
  protected readonly turns = new CallTurns();
  readonly #deps: AgentProcessesDeps<Target>;

  constructor(deps: AgentProcessesDeps<Target>) {
    this.#deps = deps;
    this.calls = new ProcessCalls(deps);
  }

  abstract start(id: InstanceId, order: ProcessOrder): Promise<ProcessFact>;

  abstract run(
    id: InstanceId,
    order: ProcessOrder,
    request: OutputRequest,
  ): Promise<StartedReading>;

  abstract list(id: InstanceId): Promise<readonly ProcessFact[]>;

  find(id: InstanceId, processId: ProcessId): Promise<ProcessFact | undefined> {
    return this.enter(id, async (targets) => (await this.#find(targets, processId))?.fact);
  }

  async *output(
    id: InstanceId,
    processId: ProcessId,
    request: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    const place = await this.enter(id, (targets) => this.#place(targets, processId));
    yield* followOutput(this.calls, place, request);
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
    return this.enter(id, async (targets) => {
      const place = await this.#place(targets, processId);
      await this.calls.ask(place, { tokens: ['remove-process'], removes: true });
    });
  }

  protected enter<T>(id: InstanceId, way: (targets: readonly Target[]) => Promise<T>): Promise<T> {
    return this.#deps.enter(id, way);
  }

  protected async factOf(
    place: ProcessPlace<Target>,
    question: ProcessQuestion,
  ): Promise<ProcessFact> {
    const [fact] = factsIn(await this.calls.ask(place, question));
    if (!fact) throw unsaid();
    return fact;
  }

  protected async read(
    place: ProcessPlace<Target>,
    question: ProcessQuestion,
    pace: boolean,
  ): Promise<StartedReading> {
    const stop = new AbortController();
    const { fact, pieces } = await this.calls.inTime(stop, () =>
      this.#begin(place, question, stop),
    );
    const leave = (): void => stop.abort(new Error('it is no longer read'));
    const begun = { pieces, leave };
    return {
      fact,
      output: (signal) => followOutput(this.calls, place, { pace, signal, begun }),
      leave,
    };
  }

  async #begin(
    place: ProcessPlace<Target>,
    question: ProcessQuestion,
    { signal }: AbortController,
  ): Promise<{ readonly fact: ProcessFact; readonly pieces: BegunReading['pieces'] }> {
    const pieces = piecesOf(await this.calls.begin(place, question, signal));
    const first = await pieces.next();
    const piece = first.done === true ? undefined : first.value;
    const fact = piece?.kind === 'record' ? readProcess(piece.record) : undefined;
    if (fact) return { fact, pieces };
    await pieces.return();
    throw unsaid();
  }

  async #inTurn(id: InstanceId, processId: ProcessId, question: ProcessQuestion): Promise<void> {
    await this.enter(id, async (targets) => {
      const place = await this.#place(targets, processId);
      const tokens = [...question.tokens, 'key', newKey()];
      await this.turns.take(
        `${this.#deps.keyOf(place.target)} ${processId}`,
        () => this.calls.ask(place, { ...question, tokens }),
        question.unless,
      );
    });
  }

  async #act(id: InstanceId, processId: ProcessId, tokens: readonly string[]): Promise<void> {
    await this.enter(id, async (targets) =>
      this.calls.ask(await this.#place(targets, processId), { tokens }),
    );
  }

  async #place(targets: readonly Target[], processId: ProcessId): Promise<ProcessPlace<Target>> {
    const [only, ...others] = targets;
    if (only && others.length === 0) return { target: only, processId };
    const found = await this.#find(targets, processId);
    if (!found) throw new ProcessGone('there is no such process');
    return found.place;
  }

  async #find(
    targets: readonly Target[],
    processId: ProcessId,
  ): Promise<{ readonly place: ProcessPlace<Target>; readonly fact: ProcessFact } | undefined> {
    const ask = async (target: Target) => {
      const place = { target, processId };
      const records = await this.calls.ask(place, { tokens: ['find'] }).catch((error: unknown) => {
        if (error instanceof ProcessGone) return [];
        throw error;
      });
      const fact = factsIn(records)[0];
      return fact && { place, fact };
    };
    const found = await Promise.all(targets.map(ask));
    return found.find((each) => each !== undefined);
  }
}

const newKey = (): string => randomBytes(8).toString('hex');

const factsIn = (records: readonly Buffer[]): readonly ProcessFact[] =>
  records.flatMap((record) => readProcess(record) ?? []);

const unsaid = (): OutcomeUnknown =>
  new OutcomeUnknown('the sandbox does not report the state of the process');

/** Latest start first, without the oldest ended processes beyond the limit. */
export const listOf = (facts: readonly ProcessFact[]): readonly ProcessFact[] => {
  const ended = facts.filter(({ status }) => status === 'Exited');
  const forgotten = new Set(
    ended.sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0)).slice(ENDED_PROCESSES),
  );
  return facts
    .filter((fact) => !forgotten.has(fact))
    .sort((one, other) => other.startedAt - one.startedAt);
};

/** The protocol can't carry a NUL. */
export const requireWithoutNul = ({ argv, cwd, env }: ProcessOrder): void => {
  const has = (texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'));
  if (has(argv)) throw new ProcessRefused('command', 'an argument contains a NUL');
  if (has([cwd ?? ''])) throw new ProcessRefused('cwd', 'the folder contains a NUL');
  if (has(Object.entries(env ?? {}).flat())) throw new ProcessRefused('env', 'it contains a NUL');
};
