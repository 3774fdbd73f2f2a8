import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { signalOf } from '../../lib/signal-names.ts';
import type { ProcessOrder } from '../../contracts/processes.ts';
import type { ProcessFact, ProcessId } from '../../model/process.ts';

/** Before the id of a process in the name of its folder, so that no name is an option. */
const BEFORE_ID = 'p';

export const folderNameOf = (processId: ProcessId): string => `${BEFORE_ID}${processId}`;

/**
 * Returns what the container keeps of a process as it was told: one line of JSON. Whoever is in the
 * sandbox can write it, so that it is read like any other input.
 */
export const toldOf = (order: ProcessOrder, startedAt: number): string =>
  JSON.stringify({
    argv: order.argv,
    startedAt,
    tag: order.tag,
    tty: order.tty !== undefined,
    stdin: order.stdin || order.tty !== undefined,
  });

const LINE =
  /^p([\w-]{1,64}) ([REL]) (\d{1,10}) ([\d.]+) ([\d.]+|-) ([\d.]+|-) (\d{1,3}|-) (\{.*)$/;

/** Reads a line of `describe`; undefined where it is none. */
export const readProcess = (line: string): ProcessFact | undefined => {
  const [, processId, status, pid, started, ended, , code, told] = LINE.exec(line) ?? [];
  const what = told === undefined ? undefined : readTold(told);
  if (!what || processId === undefined) return undefined;
  const { argv, startedAt, tag, tty, stdin } = what;
  const fact = { processId, pid: Number(pid), argv, startedAt, tag, tty, stdin };
  if (status === 'R') return { ...fact, status: 'Running' };
  // One that nobody waited for was killed with whoever would have.
  const exitCode = status === 'E' && code !== '-' ? Number(code) : KILLED;
  const signal = exitCode === TIMED_OUT ? undefined : signalOf(exitCode);
  const endedAt = startedAt + Math.round(1_000 * (Number(ended) - Number(started)));
  return {
    ...fact,
    status: 'Exited',
    exitCode,
    signal,
    ...(status === 'E' && endedAt >= startedAt && endedAt < LATEST ? { endedAt } : {}),
  };
};

/**
 * Returns the first lines that list.sh printed. Throws OutcomeUnknown where they are not all there.
 */
export const wholeList = (answer: string, most: number): readonly string[] => {
  if (!/(?:^|\n)\.\n$/.test(answer))
    throw new OutcomeUnknown('the sandbox does not say what processes there are');
  return answer.slice(0, -2).split('\n', most);
};

/** The fact of a process that was just begun with what `toldOf` said of it. */
export const begunAs = (
  begun: Pick<ProcessFact, 'processId' | 'pid'>,
  told: string,
): ProcessFact => {
  const what = readTold(told);
  if (!what) throw new Error('what is told of a process can not be read');
  const { tag, ...rest } = what;
  return { ...begun, ...rest, tag, status: 'Running' };
};

const KILLED = 137;
const TIMED_OUT = 124;

interface Told {
  readonly argv: readonly string[];
  readonly startedAt: number;
  readonly tag: string | undefined;
  readonly tty: boolean;
  readonly stdin: boolean;
}

const readTold = (text: string): Told | undefined => {
  let told: Partial<Record<keyof Told, unknown>>;
  try {
    told = JSON.parse(text) as Partial<Record<keyof Told, unknown>>;
  } catch {
    return undefined;
  }
  const { argv, startedAt, tag, tty, stdin } = told;
  if (!Array.isArray(argv) || !argv.every((each) => typeof each === 'string')) return undefined;
  if (typeof startedAt !== 'number' || !(startedAt >= 0 && startedAt < LATEST)) return undefined;
  return {
    argv,
    startedAt,
    tag: typeof tag === 'string' ? tag : undefined,
    tty: tty === true,
    stdin: stdin === true,
  };
};

/** The last moment that a Date has. */
const LATEST = 8.64e15;
