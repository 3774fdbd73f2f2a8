import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import {
  InputClosed,
  ProcessEnded,
  ProcessesFull,
  ProcessesNotProvided,
  ProcessGone,
  ProcessRefused,
  type OutputRequest,
  type ProcessOrder,
} from '../../contracts/processes.ts';
import { ENDED_PROCESSES, INPUT_BYTES, LIVE_PROCESSES } from '../../model/process.ts';
import type { ProcessFact, ProcessId, ProcessOutput, ProcessSignal } from '../../model/process.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { askPod } from '../streams/ask-pod.ts';
import { execOrder } from '../streams/exec-scripts.ts';
import type { PodLinks } from '../streams/pod-links.ts';
import { scriptLines } from '../streams/pod-script.ts';
import { NoShell } from '../streams/script-channel.ts';
import { findProcess, followOutput, type ProcessPlace } from './process-output.ts';
import { begunAs, folderNameOf, readProcess, toldOf, wholeList } from './process-record.ts';
import { PodTurns } from './pod-turns.ts';
import { processScripts } from './process-scripts.ts';

/** Until the record of a process that another call has begun is there, and how often it is read. */
const RECORD_WITHIN_MS = 5_000;
const READ_EVERY_MS = 50;
/** Until a program that could not be run has failed. */
const FAILED_WITHIN_MS = 3_000;
/** Bytes of a sandbox's list; a process's arguments may be long. */
const LONGEST_LIST = 16 << 20;
/** Lines of it; the sandbox can write more than there are processes. */
const MOST_LISTED = 2 * (LIVE_PROCESSES + ENDED_PROCESSES);

interface Starting {
  readonly target: PodTarget;
  readonly order: ProcessOrder;
  readonly startedAt: number;
  readonly others: readonly PodTarget[];
}

/**
 * Processes in the containers of a Pod, as `ProcessDriver` promises them. They are the container's
 * own: a shell there starts each, keeps its record and the end of its output in the Pod's memory,
 * and waits for it. So any replica answers for any process, and none of them is needed for it to go
 * on.
 *
 * A Pod's `targets` are its containers, the first one first.
 */
export class PodProcesses {
  readonly #links: PodLinks;
  /** Where starts and inputs of a Pod or process wait for the ones before them. */
  readonly #turns = new PodTurns();

  constructor(links: PodLinks) {
    this.#links = links;
  }

  /** `startedAt`: now, in ms since the epoch. */
  start(
    targets: readonly PodTarget[],
    order: ProcessOrder,
    startedAt: number,
  ): Promise<ProcessFact> {
    const target = targets.find(({ container }) => container === order.container) ?? targets[0];
    if (!target) return Promise.reject(new NotJoinable('the sandbox has no container yet'));
    return this.#turns.take(`start ${target.uid}`, () =>
      this.#start({ target, order, startedAt, others: targets.filter((each) => each !== target) }),
    );
  }

  /** The latest start first. */
  async list(targets: readonly PodTarget[]): Promise<readonly ProcessFact[]> {
    const lists = await this.#ofContainers(targets, async (target) => {
      const answer = await askPod(this.#links, target, {
        script: processScripts().list,
        input: scriptLines(roomOf(target), ''),
        limit: LONGEST_LIST,
      });
      return wholeList(answer, MOST_LISTED).flatMap((line) => readProcess(line) ?? []);
    });
    return withoutForgotten(lists.flat()).sort((a, b) => b.startedAt - a.startedAt);
  }

  async find(
    targets: readonly PodTarget[],
    processId: ProcessId,
  ): Promise<ProcessFact | undefined> {
    return (await this.#find(targets, processId))?.fact;
  }

  async *output(
    targets: readonly PodTarget[],
    processId: ProcessId,
    { signal, ...request }: OutputRequest & { readonly signal: AbortSignal },
  ): AsyncGenerator<ProcessOutput, void, undefined> {
    const place = await this.#place(targets, processId);
    yield* followOutput(this.#links, place, { ...request, signal });
  }

  async write(
    targets: readonly PodTarget[],
    processId: ProcessId,
    bytes: Buffer,
    signal: AbortSignal,
  ): Promise<void> {
    if (bytes.length > INPUT_BYTES) throw new Error(`more than ${INPUT_BYTES} bytes of input`);
    const place = await this.#place(targets, processId);
    const write = (): Promise<void> => this.#write(place, bytes, signal);
    await this.#turns.take(inputOf(place), write, signal);
  }

  async closeInput(targets: readonly PodTarget[], processId: ProcessId): Promise<void> {
    const place = await this.#place(targets, processId);
    await this.#turns.take(inputOf(place), () => this.#act(place, 'eof'));
  }

  async resize(
    targets: readonly PodTarget[],
    processId: ProcessId,
    { cols, rows }: { readonly cols: number; readonly rows: number },
  ): Promise<void> {
    const place = await this.#place(targets, processId);
    if ((await this.#act(place, `resize ${cols} ${rows}`)) === 'unable')
      throw new ProcessRefused('tty', 'the process has no terminal');
  }

  async signal(
    targets: readonly PodTarget[],
    processId: ProcessId,
    name: ProcessSignal,
  ): Promise<void> {
    await this.#act(await this.#place(targets, processId), `signal ${name}`);
  }

  async remove(targets: readonly PodTarget[], processId: ProcessId): Promise<void> {
    const answer = await this.#act(await this.#place(targets, processId), 'remove');
    if (answer === 'unable') throw new OutcomeUnknown('the process could not be removed in time');
  }

  async #start({ target, order, startedAt, others }: Starting): Promise<ProcessFact> {
    const { cwd, env, argv, tty, processId, timeoutMs } = order;
    const place = placeOf(target, processId);
    const head = scriptLines(
      place.room,
      place.folder,
      order.stdin || tty ? 'yes' : 'no',
      tty ? 'yes' : 'no',
      timeoutMs === undefined ? '-' : Math.max(1, Math.ceil(timeoutMs / 1_000)),
      LIVE_PROCESSES - (await this.#liveIn(others)),
      toldOf(order, startedAt),
      tty?.cols ?? 80,
      tty?.rows ?? 24,
    );
    const answer = await askPod(this.#links, target, {
      script: processScripts().start,
      input: Buffer.concat([head, execOrder({ argv, cwd, env, token: '' })]),
    }).catch((error: unknown) => {
      throw asProvided(error);
    });
    return await this.#started(place, answer.trim(), { order, startedAt });
  }

  async #started(
    place: ProcessPlace,
    answer: string,
    { order, startedAt }: Pick<Starting, 'order' | 'startedAt'>,
  ): Promise<ProcessFact> {
    const [word, ...more] = answer.split(' ');
    const why = cleaned(more.join(' '));
    switch (word) {
      case 'started':
        return begunAs({ processId: order.processId, pid: pidIn(why) }, toldOf(order, startedAt));
      case 'exists':
        return await this.#recorded(place, RECORD_WITHIN_MS, () => true);
      case 'late':
        return await this.#recorded(place, FAILED_WITHIN_MS, ({ status }) => status === 'Exited');
      case 'full':
        throw new ProcessesFull('sandbox', `${LIVE_PROCESSES} processes of the sandbox are live`);
      case 'roomless':
        throw new ProcessesFull(
          'sandbox',
          'the memory of the sandbox has no room for what is kept of a process; remove something',
        );
      case 'lacking':
        throw new ProcessesNotProvided(
          `the container "${place.target.container}" has not what processes need: ${why}`,
        );
      case 'refused':
        throw refusalOf(why, order);
      default:
        throw new OutcomeUnknown('the sandbox does not say what became of the process');
    }
  }

  /** Reads the record until it is as it is to be; the last one at the latest after so long. */
  async #recorded(
    place: ProcessPlace,
    withinMs: number,
    isDone: (fact: ProcessFact) => boolean,
  ): Promise<ProcessFact> {
    const until = performance.now() + withinMs;
    for (;;) {
      const fact = await findProcess(this.#links, place);
      if (fact && isDone(fact)) return fact;
      if (performance.now() >= until) {
        if (fact) return fact;
        throw new OutcomeUnknown('the process has no record');
      }
      await sleep(READ_EVERY_MS);
    }
  }

  async #write(place: ProcessPlace, bytes: Buffer, signal: AbortSignal): Promise<void> {
    if (bytes.length === 0) return;
    signal.throwIfAborted();
    const piece = randomBytes(8).toString('hex');
    const input = scriptLines(place.room, place.folder, piece, bytes.length);
    const answer = await askPod(this.#links, place.target, {
      script: processScripts().write,
      input: Buffer.concat([input, bytes]),
      withinMs: LONGEST_WAIT_MS,
      signal,
    }).catch(async (error: unknown) => {
      if (!signal.aborted) throw error;
      if ((await this.#act(place, `take ${piece}`)) === 'late') return 'taken';
      throw error;
    });
    const word = answer.trim().split('\n').at(-1);
    if (word === 'gone') throw new ProcessGone('there is no such process');
    if (word === 'closed') throw new InputClosed(CLOSED);
    if (word !== 'taken') throw new OutcomeUnknown('the sandbox does not say whether it took it');
  }

  async #act(place: ProcessPlace, deed: string): Promise<string> {
    const answer = await askPod(this.#links, place.target, {
      script: processScripts().act,
      input: scriptLines(place.room, place.folder, deed),
    });
    const word = answer.trim();
    if (word === 'gone') throw new ProcessGone('there is no such process');
    if (word === 'ended') throw new ProcessEnded('the process has ended');
    if (word === 'closed') throw new InputClosed(CLOSED);
    if (word === '') throw new OutcomeUnknown('the sandbox does not say whether it was done');
    return word;
  }

  async #liveIn(others: readonly PodTarget[]): Promise<number> {
    if (others.length === 0) return 0;
    const known = await this.list(others).catch((error: unknown) => {
      if (error instanceof ProcessesNotProvided) return [];
      throw error;
    });
    return known.filter(({ status }) => status === 'Running').length;
  }

  async #place(targets: readonly PodTarget[], processId: ProcessId): Promise<ProcessPlace> {
    const [only, ...others] = targets;
    if (only && others.length === 0) return placeOf(only, processId);
    const found = await this.#find(targets, processId);
    if (!found) throw new ProcessGone('there is no such process');
    return found.place;
  }

  async #find(
    targets: readonly PodTarget[],
    processId: ProcessId,
  ): Promise<{ readonly place: ProcessPlace; readonly fact: ProcessFact } | undefined> {
    const found = await this.#ofContainers(targets, async (target) => {
      const place = placeOf(target, processId);
      const fact = await findProcess(this.#links, place);
      return fact && { place, fact };
    });
    return found.find((each) => each !== undefined);
  }

  /** Containers without a shell have no processes; where all are, that is the answer. */
  async #ofContainers<T>(
    targets: readonly PodTarget[],
    ask: (target: PodTarget) => Promise<T>,
  ): Promise<readonly T[]> {
    const answers = await Promise.allSettled(targets.map(ask));
    const failed = answers.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    const grave = failed.find((error) => !(error instanceof NoShell));
    if (grave !== undefined) throw grave;
    if (failed.length > 0 && failed.length === answers.length) throw asProvided(failed[0]);
    return answers.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }
}

/** Whoever writes sets deadlines of his own. */
const LONGEST_WAIT_MS = 3_600_000;
const CLOSED = 'the process takes no input: it has none, has closed it, or has ended';

/** Drops those that ended before so many others; the next start forgets them. */
const withoutForgotten = (facts: readonly ProcessFact[]): ProcessFact[] => {
  const ended = facts.filter(({ status }) => status === 'Exited');
  const forgotten = new Set(
    ended.sort((a, b) => (b.endedAt ?? 0) - (a.endedAt ?? 0)).slice(ENDED_PROCESSES),
  );
  return facts.filter((fact) => !forgotten.has(fact));
};

const roomOf = ({ uid, container }: PodTarget): string => `.sandpool-${uid}-${container}`;

const placeOf = (target: PodTarget, processId: ProcessId): ProcessPlace => ({
  target,
  room: roomOf(target),
  folder: folderNameOf(processId),
});

const inputOf = ({ target, folder }: ProcessPlace): string => `write ${target.uid} ${folder}`;

/** 0 where the sandbox says something else. */
const pidIn = (text: string): number => (/^\d{1,10}$/.test(text) ? Number(text) : 0);

const asProvided = (error: unknown): unknown =>
  error instanceof NoShell
    ? new ProcessesNotProvided(`${error.message}: use exec or a terminal`)
    : error;

const refusalOf = (why: string, { cwd }: ProcessOrder): Error => {
  if (why === 'cwd')
    return new ProcessRefused('cwd', `there is no folder ${cwd ?? ''} to start in`);
  if (why.startsWith('tty'))
    return new ProcessRefused(
      'tty',
      `the container has no program "${why.slice(4)}", without which a process gets no terminal; ` +
        'start it without one, or use POST /sandboxes/{sandboxId}/exec-token',
    );
  return new OutcomeUnknown('the order did not reach the sandbox whole');
};
