import type { Clock } from '../contracts/clock.ts';
import type { InstanceFact } from '../model/sandbox.ts';
import { SharedReads } from '../model/shared-reads.ts';
import type { ApiClient } from './api-client.ts';
import type { InstanceMirror } from './instance-mirror.ts';
import { POOL_LABEL, sandboxesPath, STATE_LABEL, storedSandboxOf, type StoredSandbox } from './sandbox-resource.ts';

export interface IdleLookDeps {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly mirror: InstanceMirror;
  /** Of a record that was just read: its Pod, read uncached. */
  readonly read: (stored: StoredSandbox) => Promise<InstanceFact>;
}

const PAGE = 20;
const MOST_PAGES = 10;
const MOST_LOOKED_AT_AGAIN = 5;

/**
 * Idle records of a pool as the API server has them now: one list of at most 20 at a time, gone on with for 10 pages while
 * all that it shows are known to be starting or unavailable; then the Pods of 5 of these are read too. At most one look in 250 ms and pool, shared by all who asked
 * before it began.
 */
export class IdleLook {
  readonly #deps: IdleLookDeps;
  readonly #reads: SharedReads<readonly InstanceFact[]>;

  constructor(deps: IdleLookDeps) {
    this.#deps = deps;
    this.#reads = new SharedReads({ clock: deps.clock, read: (key) => this.#list(key) });
  }

  async look(poolUid: string, namespace: string): Promise<readonly InstanceFact[]> {
    return await this.#reads.read(`${namespace}/${poolUid}`) ?? [];
  }

  async #list(key: string): Promise<readonly InstanceFact[]> {
    const [namespace = '', poolUid = ''] = key.split('/');
    const late: StoredSandbox[] = [];
    let rest: string | undefined;
    for (let page = 0; page < MOST_PAGES; page++) {
      const answer = await this.#deps.api.list(sandboxesPath(namespace), {
        labelSelector: `${POOL_LABEL}=${poolUid},${STATE_LABEL}=idle`, limit: PAGE, ...(rest === undefined ? {} : { continue: rest }),
      });
      const { items = [], metadata } = answer as { readonly items?: readonly unknown[]; readonly metadata?: { readonly continue?: string } };
      const shown = items.flatMap((item) => storedSandboxOf(item) ?? []).filter(({ terminating }) => !terminating);
      const facts = await Promise.all(shown.map((stored) => this.#factOf(stored)));
      late.push(...shown.filter((_, n) => isLate(facts[n])));
      const ready = facts.filter(isReady);
      rest = metadata?.continue;
      if (ready.length > 0) return ready;
      if (!rest) break;
    }
    return await this.#lookAgain(late);
  }

  /** At those that the mirror does not have as ready, the oldest first: it may be behind. */
  async #lookAgain(late: readonly StoredSandbox[]): Promise<readonly InstanceFact[]> {
    const oldest = [...late].sort((a, b) => a.record.createdAt - b.record.createdAt).slice(0, MOST_LOOKED_AT_AGAIN);
    return (await Promise.all(oldest.map((stored) => this.#deps.read(stored)))).filter(isReady);
  }

  /** Of one whose Pod is known here, its readiness is as fresh as the mirror. */
  async #factOf(stored: StoredSandbox): Promise<InstanceFact> {
    const { id } = stored.record;
    this.#deps.mirror.putSandbox(stored);
    const known = this.#deps.mirror.pod(id) && this.#deps.mirror.fact(id);
    return known ?? await this.#deps.read(stored);
  }
}

const isReady = ({ vitals }: InstanceFact): boolean => vitals.kind === 'available';
const isLate = (fact: InstanceFact | undefined): boolean => fact?.vitals.kind === 'starting' || fact?.vitals.kind === 'unavailable';
