import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
  }

  /** The first process of an instance runs, or none does any more. */
  set(id: string, runs: boolean): void {
    if (this.#isFinal) return;
    if (runs) this.#running.add(id);
    else this.#running.delete(id);
    try {
      if (runs) this.#write(id, KILLED);
      else rmSync(join(this.#folder, id), { force: true });
    } catch {
      // A full disk keeps no program from running.
    }
  }

  /** All that run end now. What comes after this changes no note. */
  end(why: string): void {
    this.#isFinal = true;
    try {
      for (const id of this.#running) this.#write(id, why);
    } catch {
      // The note says that the spawner was killed.
    }
  }

  /** Returns what a former spawner left, the reason by the instance, and forgets it. */
  take(): ReadonlyMap<string, string> {
    const left = new Map<string, string>();
    for (const id of readdirSync(this.#folder)) {
      const path = join(this.#folder, id);
      left.set(id, readFileSync(path, 'utf8').slice(0, MOST_CHARACTERS) || KILLED);
      rmSync(path, { force: true });
    }
    return left;
  }

  #write(id: string, why: string): void {
    writeFileSync(join(this.#folder, id), why, { mode: 0o600 });
  }
}

const KILLED = 'the process that ran them was killed';
const MOST_CHARACTERS = 200;
