import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ProcessIdentity } from './process-identity.ts';

/** What is known of an instance before it may run; enough to find it, join it and clean up after it. */
export interface InstanceNote {
  readonly id: string;
  readonly bootId: string;
  /** The launcher, which becomes the outer bubblewrap. */
  readonly outer: ProcessIdentity;
  readonly uid: number;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
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
  readonly running: RunningNote | undefined;
}

/**
 * One folder an instance, `run/<id>`. Written plainly: what the spawner wrote outlives its death, a torn note means that
 * the order behind it was never given, and after a power cut the processes are gone too.
 */
export class Notes {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'run');
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** The note must be there before the order is given. */
  write(note: InstanceNote): void {
    const folder = join(this.#folder, note.id);
    mkdirSync(folder, { mode: 0o700 });
    writeFileSync(join(folder, 'note.json'), JSON.stringify(note), { mode: 0o600 });
  }

  writeRunning(id: string, running: RunningNote): void {
    writeFileSync(join(this.#folder, id, 'running.json'), JSON.stringify(running), { mode: 0o600 });
  }

  /** May be repeated. */
  async remove(id: string): Promise<void> {
    await rm(join(this.#folder, id), { recursive: true, force: true });
  }

  all(): readonly FoundNote[] {
    return readdirSync(this.#folder).map((id) => ({
      id,
      note: parsed<InstanceNote>(join(this.#folder, id, 'note.json')),
      running: parsed<RunningNote>(join(this.#folder, id, 'running.json')),
    }));
  }
}

/** What a former spawner wrote into a folder that only we may write; undefined where it is absent or torn. */
const parsed = <T>(path: string): T | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T;
  } catch {
    return undefined;
  }
};
