import { randomBytes } from 'node:crypto';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { ProcessGone, type OutputRequest } from '../../contracts/processes.ts';
import type { ProcessFact, ProcessOutput } from '../../model/process.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { askPod } from '../streams/ask-pod.ts';
import type { PodLinks } from '../streams/pod-links.ts';
import { scriptLines } from '../streams/pod-script.ts';
import { ScriptChannel } from '../streams/script-channel.ts';
import { FramesSpoilt, OutputFrames } from './output-frames.ts';
import { readProcess, wholeList } from './process-record.ts';
import { processScripts } from './process-scripts.ts';

/** Where a process is: the container, and how that names it. */
export interface ProcessPlace {
  readonly target: PodTarget;
  readonly room: string;
  readonly folder: string;
}

/** Between two attempts to go on where the way was lost, and how often without a byte between. */
const PAUSE_MS = 500;
const MOST_ATTEMPTS = 6;
/** Bytes of a record, with the arguments of its process. */
const LONGEST_RECORD = 2 << 20;
const POSITION = /^\d{1,15}$/;

export interface OutputTerms extends OutputRequest {
  readonly signal: AbortSignal;
}

/**
 * A process whose launcher was killed tells nobody of its end: after so long without output, the
 * record is looked at.
 */
const LOOK_AFTER_MS = 60_000;

/**
 * Follows what a process prints, as `ProcessDriver.output` promises it, by one script that the
 * container runs meanwhile. Where the way is lost it goes on by another one, from where it was.
 */
export async function* followOutput(
  links: PodLinks,
  place: ProcessPlace,
  { from, pace, signal }: OutputTerms,
): AsyncGenerator<ProcessOutput, void, undefined> {
  let begin = from !== undefined && (from === 'latest' || POSITION.test(from)) ? from : '-';
  let attempts = 0;
  while (!signal.aborted) {
    const frames = new OutputFrames(POSITION.test(begin) ? Number(begin) : undefined);
    try {
      for await (const piece of readOnce(links, place, { frames, begin, pace, signal })) {
        attempts = 0;
        yield piece;
        if (piece.kind === 'end') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const isLost = error instanceof OutcomeUnknown || error instanceof FramesSpoilt;
      if (!isLost || attempts >= MOST_ATTEMPTS) throw asKnown(error);
    }
    attempts += 1;
    if (frames.position !== undefined) begin = String(frames.position);
    if (signal.aborted || !(await links.pause(PAUSE_MS))) return;
    if (attempts > MOST_ATTEMPTS) throw new OutcomeUnknown('the output could not be read on');
  }
}

interface Reading {
  readonly frames: OutputFrames;
  readonly begin: string;
  readonly pace: boolean;
  readonly signal: AbortSignal;
}

async function* readOnce(
  links: PodLinks,
  { target, room, folder }: ProcessPlace,
  { frames, begin, pace, signal }: Reading,
): AsyncGenerator<ProcessOutput, void, undefined> {
  const reader = randomBytes(8).toString('hex');
  const input = scriptLines(room, folder, reader, begin, pace ? 'yes' : 'no');
  const channel = await ScriptChannel.open(links, target, processScripts().output, input);
  const leave = (): void => {
    channel.close();
  };
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  const next = (): string => String(frames.position ?? 0);
  const look = new SilenceLook(links, { target, room, folder }, channel);
  try {
    for await (const bytes of channel.output) {
      look.heard();
      for (const frame of frames.push(bytes)) {
        if (frame.kind === 'gone') throw new ProcessGone('the process was removed');
        if (frame.kind !== 'ended') yield frame;
        else yield { kind: 'end', fact: factIn(frame.line), next: next() };
      }
    }
  } catch (error) {
    if (look.ended && !signal.aborted) yield { kind: 'end', fact: look.ended, next: next() };
    else throw look.gone ?? error;
  } finally {
    look.stop();
    signal.removeEventListener('abort', leave);
    channel.close();
  }
}

const factIn = (line: string): ProcessFact => {
  const fact = readProcess(line);
  if (!fact) throw new ProcessGone('the record of the process can not be read');
  return fact;
};

const asKnown = (error: unknown): unknown =>
  error instanceof FramesSpoilt
    ? new OutcomeUnknown('what the sandbox keeps of the output is spoilt', { cause: error })
    : error;

/** Looks at the record of a process that prints nothing; ends the reading of one that is over. */
class SilenceLook {
  ended: ProcessFact | undefined;
  gone: ProcessGone | undefined;
  readonly #links: PodLinks;
  readonly #place: ProcessPlace;
  readonly #channel: ScriptChannel;
  readonly #timer: NodeJS.Timeout;
  #isQuiet = false;
  #isOver = false;

  constructor(links: PodLinks, place: ProcessPlace, channel: ScriptChannel) {
    this.#links = links;
    this.#place = place;
    this.#channel = channel;
    this.#timer = setInterval(() => {
      if (this.#isQuiet) links.background(this.#look());
      this.#isQuiet = true;
    }, LOOK_AFTER_MS);
  }

  heard(): void {
    this.#isQuiet = false;
  }

  stop(): void {
    this.#isOver = true;
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    const fact = await findProcess(this.#links, this.#place).catch(() => null);
    if (fact === null || this.#isOver || !this.#isQuiet || fact?.status === 'Running') return;
    this.ended = fact;
    if (!fact) this.gone = new ProcessGone('the process is gone');
    this.#channel.close();
  }
}

/** Reads the record of one process; undefined where there is none. Rejects as `askPod`. */
export const findProcess = async (
  links: PodLinks,
  { target, room, folder }: ProcessPlace,
): Promise<ProcessFact | undefined> => {
  const answer = await askPod(links, target, {
    script: processScripts().list,
    input: scriptLines(room, folder),
    limit: LONGEST_RECORD,
  });
  return wholeList(answer, 1).map(readProcess)[0];
};
