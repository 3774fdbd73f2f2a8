import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessIdentity } from './process-identity.ts';
import type { InsideIds } from '../protocol.ts';
import type { NamedProbe } from '../probes/readiness.ts';

/** The facts of an instance before it may run: enough to find it, join it and clean up after it. */
export interface InstanceNote {
  readonly id: string;
  readonly bootId: string;
  /** The launcher, which becomes the outer bubblewrap. */
  readonly outer: ProcessIdentity;
  readonly uid: number;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /** Home of a bare sandbox on the host; absent for others. */
  readonly home?: string;
  /** Image and user of the sandbox; absent for `host`. */
  readonly image?: { readonly key: string; readonly user: InsideIds };
  readonly tenant: string;
  /** Probes of the sandbox's template; absent if it has none. */
  readonly probes?: readonly NamedProbe[];
}

/** Added when the main process runs. `init` is the init of the namespace. */
export interface RunningNote {
  readonly init: ProcessIdentity;
  /** ms since the epoch. */
  readonly startedAt: number;
}

export interface FoundNote {
  readonly id: string;
  /** Absent if the note is torn: then the order was never given, and nothing runs. */
  readonly note: InstanceNote | undefined;
  /** Absent if the instance never ran, as far as the notes show. */
  readonly running: RunningNote | undefined;
  /** Its probes have passed once. */
  readonly wasReady: boolean;
}

/**
 * One file per instance, `run/<id>`: one or two lines of JSON, and a third after its probes passed.
 *
 * Plain writes are enough. The kernel keeps them if the spawner dies, a torn note means that its
 * order was never given, and a power cut ends the processes too. (A folder per instance costs a
 * third more of the spawner's time in a launch.)
 */
export class Notes {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'run');
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** The note must be written before the order is given. */
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
    // Not our file: counts as torn.
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
 * Parses a line of a former spawner; only we may write to its folder. Undefined if it is absent or
 * torn.
 */
const parsed = <T>(line: string | undefined): T | undefined => {
  try {
    return line ? (JSON.parse(line) as T) : undefined;
  } catch {
    return undefined;
  }
};
