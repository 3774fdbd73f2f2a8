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
