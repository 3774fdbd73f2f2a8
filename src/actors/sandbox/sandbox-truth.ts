import type { Coordination } from '../../contracts/coordination.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordConflict, type SandboxDriver } from '../../contracts/sandbox-driver.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { RecentSet } from '../../lib/recent-set.ts';
import { unavailable } from '../../model/refusals.ts';
import type { InstanceFact, InstanceRecord } from '../../model/sandbox.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';

export interface SandboxTruthDeps {
  readonly driver: Pick<SandboxDriver, 'confirm' | 'read' | 'bump' | 'findClaimByKey'>;
  readonly coordination: Pick<Coordination, 'ended'>;
  readonly log: Log;
  readonly shown: (id: string) => SandboxSnapshot | undefined;
  readonly learn: (fact: InstanceFact) => void;
}

const MOST_FENCINGS = 4;
/** Ended ones that are remembered: more than end while one read takes its time. */
const MOST_ENDED = 10_000;

/** Reads the sandboxes' truth, and teaches it to their actors. */
export class SandboxTruth {
  readonly #deps: SandboxTruthDeps;
  readonly #ended = new RecentSet(MOST_ENDED);

  constructor(deps: SandboxTruthDeps) {
    this.#deps = deps;
  }

  /** Its actor has come to its end. */
  ended(id: InstanceId): void {
    this.#ended.add(id);
  }

  /** Takes what a read found, some time ago perhaps: what has ended since does not come back. */
  learn(fact: InstanceFact): void {
    if (this.#deps.shown(fact.id) || !this.#ended.has(fact.id)) this.#deps.learn(fact);
  }

  /**
   * Makes sure that what is shown of the sandbox is no older than this call, unless it is good
   * news: it runs, and nobody said that it ended. Refuses with `unavailable` where the truth is out
   * of reach.
   */
  async refresh(id: InstanceId, namespace: string, unless: 'it runs' | 'never'): Promise<void> {
    const { driver, log } = this.#deps;
    const shown = this.#deps.shown(id);
    if (shown && !shown.context.record) return; // its birth is under way here
    if (unless === 'it runs' && shown?.status === 'Running' && !(await this.#mayHaveEnded(id)))
      return;
    let fact: InstanceFact | undefined;
    try {
      fact = await driver.confirm(id, namespace);
    } catch (error) {
      log.warn({ id, error }, 'a sandbox could not be read');
      throw unavailable('the state of the sandbox cannot be read right now; try again');
    }
    if (fact) this.learn(fact);
  }

  /**
   * The record as it stands; where it is idle no claim that was sent before lands any more.
   * Undefined: there is none, and never will be. Rejects where that can't be told.
   */
  async fence(id: InstanceId, namespace: string): Promise<InstanceRecord | undefined> {
    const { driver } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      const fact = (await driver.confirm(id, namespace)) ?? (await driver.read(id));
      this.learn(fact);
      if (fact.record?.state !== 'idle') return fact.record;
      try {
        const record = await driver.bump(id, fact.record.revision);
        // Of one that was heard to be gone meanwhile nothing is learned.
        if (this.#deps.shown(id)) this.learn({ ...fact, record });
        return record;
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_FENCINGS) throw error;
      }
    }
  }

  /**
   * Makes sure that what a request with an Idempotency-Key claimed before this call is shown.
   * Refuses with `unavailable` where that can't be told.
   */
  async refreshClaimsByKey(markKey: string, namespace: string): Promise<void> {
    const { driver, log } = this.#deps;
    try {
      for (const fact of await driver.findClaimByKey(markKey, namespace)) this.learn(fact);
    } catch (error) {
      log.warn({ namespace, error }, 'the claims of an earlier request could not be read');
      throw unavailable(
        'the outcome of an earlier request is not known right now; repeat the request',
      );
    }
  }

  /** Another replica ended it a moment ago, or nobody can tell. */
  async #mayHaveEnded(id: InstanceId): Promise<boolean> {
    return await this.#deps.coordination.ended(id).then(
      (end) => end !== undefined,
      () => true,
    );
  }
}
