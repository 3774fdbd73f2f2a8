import { appendFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessIdentity } from './process-identity.ts';
import type { InsideIds } from '../protocol.ts';
import type { NamedProbe } from '../probes/readiness.ts';

/** Enough to find an instance, join it and clean up after it. */
export interface InstanceNote {
  readonly id: string;
  readonly bootId: string;
  /** Becomes the outer bubblewrap. */
  readonly outer: ProcessIdentity;
  readonly uid: number;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly home?: string;
  readonly image?: { readonly key: string; readonly user: InsideIds };
  readonly tenant: string;
  readonly probes?: readonly NamedProbe[];
}

/** `init` is the init of the namespace. */
export interface RunningNote {
  readonly init: ProcessIdentity;
  readonly startedAt: number;
}

export interface FoundNote {
  readonly id: string;
  /** Absent if torn: the order was never given. */
  readonly note: InstanceNote | undefined;
  /** Absent if it never ran. */
  readonly running: RunningNote | undefined;
  readonly wasReady: boolean;
}

/**
 * A file `run/<id>` per instance: one or two lines of JSON, and `ready` after its probes passed.
 *
 * Plain writes are enough: the kernel keeps them if the spawner dies, a torn note means no order,
 * and a power cut ends the processes too.
 */
export class Notes {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'run');
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** Must precede the order. */
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
    // Counts as torn.
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

/** Undefined if torn. */
const parsed = <T>(line: string | undefined): T | undefined => {
  try {
    return line ? (JSON.parse(line) as T) : undefined;
  } catch {
    return undefined;
  }
};
