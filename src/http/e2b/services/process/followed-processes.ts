import type { ProcessFact } from '../../../../model/process.ts';

interface Followed {
  readonly fact: ProcessFact;
  streams: number;
}

/**
 * Keeps the processes whose streams are open here, so that a key that is pressed needs no list of
 * all of them. There are as many as streams at most.
 */
export class FollowedProcesses {
  readonly #all = new Map<string, Followed>();

  /** Keeps a process until what it returns is called, which may be repeated. */
  add(sandboxId: string, fact: ProcessFact): () => void {
    const key = keyOf(sandboxId, fact.pid);
    const known = this.#all.get(key);
    // The number of one that ended may be another's by now.
    const followed = known?.fact.processId === fact.processId ? known : { fact, streams: 0 };
    followed.streams += 1;
    this.#all.set(key, followed);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      followed.streams -= 1;
      if (followed.streams === 0 && this.#all.get(key) === followed) this.#all.delete(key);
    };
  }

  /** Returns the process of that number; undefined where no stream of it is open here. */
  get(sandboxId: string, pid: number): ProcessFact | undefined {
    return this.#all.get(keyOf(sandboxId, pid))?.fact;
  }
}

const keyOf = (sandboxId: string, pid: number): string => `${sandboxId} ${pid}`;
