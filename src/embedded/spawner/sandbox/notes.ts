import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessIdentity } from './process-identity.ts';
import type { InsideIds } from '../protocol.ts';
import type { NamedProbe } from '../probes/readiness.ts';

/**
 * Describes what is known of an instance before it may run; enough to find it, join it and clean up
 * after it.
 */
export interface InstanceNote {
  readonly id: string;
  readonly bootId: string;
  /** The launcher, which becomes the outer bubblewrap. */
  readonly outer: ProcessIdentity;
  readonly uid: number;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /** The folder of a bare sandbox on the host; absent for others. */
  readonly home?: string;
  /** The image that the sandbox was made from, and whom it runs as; absent where it has none. */
  readonly image?: { readonly key: string; readonly user: InsideIds };
  readonly tenant: string;
  /** The probes of the sandbox's template; absent where it has none. */
  readonly probes?: readonly NamedProbe[];
}

/** Added once the main process runs: the namespace's init. */
export interface RunningNote {
  readonly init: ProcessIdentity;
  /** ms since the epoch. */
  readonly startedAt: number;
}

export interface FoundNote {
  readonly id: string;
  /** Absent where it is torn: then the order was never given, and nothing runs. */
  readonly note: InstanceNote | undefined;
  /** Absent where it never ran, as far as is known. */
  readonly running: RunningNote | undefined;
  /** Its probes have passed, once. */
  readonly wasReady: boolean;
}

/**
 * One file an instance, `run/<id>`, of one or two lines of JSON, and a third that says that its
 * probes passed. Written plainly: what the spawner wrote outlives its death, a torn note means that
 * the order behind it was never given, and after a power cut the processes are gone too. (A folder
 * each costs a third more of the spawner's time in a launch.)
 */
export class Notes {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'run');
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** The note must be there before the order is given. */
  write(note: InstanceNote): void {
    writeFileSync(join(this.#folder, note.id), `${JSON.stringify(note)}\n`, { mode: 0o600 });
  }

  writeRunning(id: string, running: RunningNote): void {
    appendFileSync(join(this.#folder, id), `${JSON.stringify(running)}\n`, { mode: 0o600 });
  }

  writeReady(id: string): void {
    appendFileSync(join(this.#folder, id), 'ready\n', { mode: 0o600 });
  }

  /** May be repeated. */
  async remove(id: string): Promise<void> {
    await rm(join(this.#folder, id), { recursive: true, force: true });
  }

  /**
   * Takes what a spawner before version 14 of the protocol left: why processes ended with it, by
   * the instance.
   */
  takeEnded(): ReadonlyMap<string, string> {
    const folder = join(this.#folder, '..', 'programs');
    const left = new Map<string, string>();
    if (!existsSync(folder)) return left;
    for (const id of readdirSync(folder))
      left.set(id, readFileSync(join(folder, id), 'utf8').slice(0, MOST_CHARACTERS));
    rmSync(folder, { recursive: true, force: true });
    return left;
  }

  get none(): boolean {
    return readdirSync(this.#folder).length === 0;
  }

  all(): readonly FoundNote[] {
    return readdirSync(this.#folder).map((id) => readNote(join(this.#folder, id), id));
  }
}

const MOST_CHARACTERS = 200;

export const readNote = (path: string, id: string): FoundNote => {
  let lines: readonly string[] = [];
  try {
    lines = readFileSync(path, 'utf8').split('\n');
  } catch {
    // No file of ours: counts as torn.
  }
  const note = parsed<InstanceNote>(lines[0]);
  const running = parsed<RunningNote>(lines[1]);
  return {
    id,
    note: note?.id === id && note.outer?.pid > 0 ? note : undefined,
    running: running?.init?.pid === undefined ? undefined : running,
    wasReady: lines[2] === 'ready',
  };
};

/**
 * Parses what a former spawner wrote into a folder that only we may write; undefined where it is
 * absent or torn.
 */
const parsed = <T>(line: string | undefined): T | undefined => {
  try {
    return line ? (JSON.parse(line) as T) : undefined;
  } catch {
    return undefined;
  }
};
