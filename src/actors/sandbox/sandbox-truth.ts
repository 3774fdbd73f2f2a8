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
/** More than can end during one read. */
const MOST_ENDED = 10_000;

export class SandboxTruth {
  readonly #deps: SandboxTruthDeps;
  readonly #ended = new RecentSet(MOST_ENDED);

  constructor(deps: SandboxTruthDeps) {
    this.#deps = deps;
  }

  ended(id: InstanceId): void {
    this.#ended.add(id);
  }

  /** Does not revive a sandbox that has ended since a possibly old read. */
  learn(fact: InstanceFact): void {
    if (this.#deps.shown(fact.id) || !this.#ended.has(fact.id)) this.#deps.learn(fact);
  }

  /**
   * The snapshot is then no older than this call. Skips the read under `it runs` if the sandbox
   * runs without an end mark. Refuses with `unavailable` if the read fails.
   */
  async refresh(id: InstanceId, namespace: string, unless: 'it runs' | 'never'): Promise<void> {
    const { driver, log } = this.#deps;
    const shown = this.#deps.shown(id);
    if (shown && !shown.context.record) return; // its launch is in progress here
    if (unless === 'it runs' && shown?.status === 'Running' && !(await this.#mayHaveEnded(id)))
      return;
    let fact: InstanceFact | undefined;
    try {
      fact = await driver.confirm(id, namespace);
    } catch (error) {
      log.warn({ id, error }, 'sandbox-not-read');
      throw unavailable('the state of the sandbox cannot be read right now; try again');
    }
    if (fact) this.learn(fact);
  }

  /**
   * If the returned record is idle, no earlier claim can land any more. Undefined if the record
   * does not exist and never will. Rejects if it can't be read or updated.
   */
  async fence(id: InstanceId, namespace: string): Promise<InstanceRecord | undefined> {
    const { driver } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      const fact = (await driver.confirm(id, namespace)) ?? (await driver.read(id));
      this.learn(fact);
      if (fact.record?.state !== 'idle') return fact.record;
      try {
        const record = await driver.bump(id, fact.record.revision);
        // Learns nothing if the sandbox has ended in the meantime.
        if (this.#deps.shown(id)) this.learn({ ...fact, record });
        return record;
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_FENCINGS) throw error;
      }
    }
  }

  /** Those made before this call. Refuses with `unavailable` if the read fails. */
  async refreshClaimsByKey(markKey: string, namespace: string): Promise<void> {
    const { driver, log } = this.#deps;
    try {
      for (const fact of await driver.findClaimByKey(markKey, namespace)) this.learn(fact);
    } catch (error) {
      log.warn({ namespace, error }, 'claims-not-read');
      throw unavailable(
        'the outcome of an earlier request is not known right now; repeat the request',
      );
    }
  }

  /** True if that can't be read. */
  async #mayHaveEnded(id: InstanceId): Promise<boolean> {
    return await this.#deps.coordination.ended(id).then(
      (end) => end !== undefined,
      () => true,
    );
  }
}
