import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  writeFileSync,
  rmSync,
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
  readonly programs: ProgramNotes;

  constructor(dataDir: string) {
    this.programs = new ProgramNotes(dataDir);
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

  get none(): boolean {
    return readdirSync(this.#folder).length === 0;
  }

  all(): readonly FoundNote[] {
    return readdirSync(this.#folder).map((id) => readNote(join(this.#folder, id), id));
  }
}

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

/**
 * Notes which sandboxes run processes, and why those end with the spawner, so that the next one can
 * tell. One file an instance, `programs/<id>`; a note that fails costs that telling alone.
 */
export class ProgramNotes {
  readonly #folder: string;
  readonly #running = new Set<string>();
  #isFinal = false;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'programs');
    quietly(() => {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    });
  }

  /** The first process of an instance runs, or none does any more. */
  set(id: string, runs: boolean): void {
    if (this.#isFinal) return;
    if (runs) this.#running.add(id);
    else this.#running.delete(id);
    quietly(() => {
      if (runs) this.#write(id, KILLED);
      else this.#remove(id);
    });
  }

  /** All that run end now. What comes after this changes no note. */
  end(why: string): void {
    this.#isFinal = true;
    quietly(() => {
      for (const id of this.#running) this.#write(id, why);
    });
  }

  /** Returns what a former spawner left, the reason by the instance, and forgets it. */
  take(): ReadonlyMap<string, string> {
    const left = new Map<string, string>();
    quietly(() => {
      for (const id of readdirSync(this.#folder)) {
        left.set(id, KILLED);
        quietly(() => {
          const why = readFileSync(join(this.#folder, id), 'utf8').slice(0, MOST_CHARACTERS);
          if (why !== '') left.set(id, why);
        });
        this.#remove(id);
      }
    });
    return left;
  }

  #remove(id: string): void {
    rmSync(join(this.#folder, id), { recursive: true, force: true });
  }

  #write(id: string, why: string): void {
    writeFileSync(join(this.#folder, id), why, { mode: 0o600 });
  }
}

/** Lets a note fail, as on a full disk: that keeps no program and no spawner from running. */
const quietly = (work: () => void): void => {
  try {
    work();
  } catch {
    // The telling is lost.
  }
};

const KILLED = 'the process that ran them was killed';
const MOST_CHARACTERS = 200;
