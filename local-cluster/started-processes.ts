import type { ChildProcess } from 'node:child_process';
import { KeptOutput, lastLinesOf } from './kept-output.ts';

export interface StartedProcess {
  readonly name: string;
  readonly pid?: number;
  readonly output: () => string;
  /** Such as `exit code 1`; undefined while it runs. */
  readonly end: () => string | undefined;
}

interface Remembered extends StartedProcess {
  /** It already ran when this test began. */
  isShared: boolean;
}

interface Memory {
  processes: Remembered[];
  file: string | undefined;
}

const KEPT_OUTPUT = 2 ** 16;
const MOST_PROCESSES = 64;
/** Ended by earlier tests of the file. */
const MOST_ENDED_EARLIER = 4;

/** For a failing test. Collects its output, unless `output` returns it. */
export const rememberChild = (name: string, child: ChildProcess, output?: () => string): void => {
  const kept = output ? undefined : KeptOutput.of(KEPT_OUTPUT, child.stdout, child.stderr);
  rememberProcess({
    name,
    pid: child.pid,
    output: () => output?.() ?? kept?.text ?? '',
    end: () => endOf(child),
  });
};

/** Forgets the oldest of too many, ended ones first. */
export const rememberProcess = (started: StartedProcess): void => {
  const memory = shared();
  memory.processes.push({ ...started, isShared: false });
  if (memory.processes.length <= MOST_PROCESSES) return;
  const oldest = memory.processes.find(hasEnded) ?? memory.processes[0];
  memory.processes = memory.processes.filter((each) => each !== oldest);
};

/** For another file, forgets all ended processes. */
export const beginFile = (file: string | undefined): void => {
  const memory = shared();
  if (file === undefined || file === memory.file) return;
  memory.file = file;
  memory.processes = memory.processes.filter((each) => !hasEnded(each));
};

/**
 * Forgets ended processes, except the last few shared ones: a daemon that died in one test makes
 * the next one fail.
 */
export const beginTest = (): void => {
  const memory = shared();
  const kept = new Set(
    memory.processes.filter((each) => each.isShared && hasEnded(each)).slice(-MOST_ENDED_EARLIER),
  );
  memory.processes = memory.processes.filter((each) => !hasEnded(each) || kept.has(each));
  for (const each of memory.processes) each.isShared = true;
};

/** Without secrets. */
export const lastLines = (count: number): readonly string[] =>
  shared().processes.flatMap((each) => [
    `${each.name} (${each.pid === undefined ? '' : `pid ${each.pid}, `}${each.end() ?? 'still running'}):`,
    ...linesOf(each, count).map((line) => `  ${line}`),
  ]);

const linesOf = ({ output }: StartedProcess, count: number): readonly string[] => {
  try {
    const lines = lastLinesOf(output().slice(-KEPT_OUTPUT), count);
    return lines.length > 0 ? lines.map(withoutSecrets) : ['(printed nothing)'];
  } catch (error) {
    return [`(its output is gone: ${String(error)})`];
  }
};

/** Masks API keys, and tokens in links and in JSON. */
export const withoutSecrets = (text: string): string =>
  text
    .replaceAll(/(token=)[^\s&"']+/gi, '$1…')
    .replaceAll(/("\w*(?:token|apiKey)\w*" *: *")[^"]+/gi, '$1…')
    .replaceAll(/\bspk_\w+/g, 'spk_…');

const hasEnded = ({ end }: StartedProcess): boolean => end() !== undefined;

const endOf = ({ pid, exitCode, signalCode }: ChildProcess): string | undefined => {
  if (pid === undefined) return 'never started';
  if (signalCode !== null) return `killed by ${signalCode}`;
  return exitCode === null ? undefined : `exit code ${exitCode}`;
};

/** For the whole process: mocha may load its reporter's modules apart from those of the tests. */
const shared = (): Memory => {
  const place = globalThis as { [MEMORY]?: Memory };
  return (place[MEMORY] ??= { processes: [], file: undefined });
};

const MEMORY = Symbol.for('sandpool.started-processes');
