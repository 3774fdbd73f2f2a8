import type { ClaimChange } from '../../model/claim-change.ts';
import type { Log } from '../../contracts/log.ts';
import { DefinitionRefused, InstanceGone, RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { InstanceRecord } from '../../model/sandbox.ts';
import type { InstanceReport } from '../spawner/protocol.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import type { SpawnerClient } from './spawner-client.ts';

/** Concurrent changes may move the record. */
const MOST_TRIES = 5;

export interface PausesDeps {
  readonly records: Pick<InstanceRecords, 'amend' | 'read'>;
  readonly client: Pick<SpawnerClient, 'freeze' | 'hello'>;
  readonly log: Log;
}

/**
 * The record changes before the spawner freezes or thaws. A new spawner is brought in line with the
 * records, so a pause survives restarts.
 */
export class Pauses {
  readonly #deps: PausesDeps;
  readonly #paused = new Set<InstanceId>();

  constructor(deps: PausesDeps) {
    this.#deps = deps;
  }

  know({ id, claim }: InstanceRecord): void {
    if (claim?.pausedAt === undefined) this.#paused.delete(id);
    else this.#paused.add(id);
  }

  forget(id: InstanceId): void {
    this.#paused.delete(id);
  }

  /** Resolves after the spawner applied a pause or its end. */
  async amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    if (!('pausedAt' in change)) return await this.#deps.records.amend(id, change, seen);
    const { records, client } = this.#deps;
    if (client.hello?.freezes === false)
      throw new DefinitionRefused('this machine cannot pause sandboxes');
    const record = await records.amend(id, change, seen);
    this.know(record);
    const paused = change.pausedAt !== null;
    try {
      await client.freeze(id, paused);
      return record;
    } catch (error) {
      if (!paused || error instanceof InstanceGone) throw error;
      await this.#takeBack(record);
      // A spawner that connected since has applied the old record.
      if (!this.#paused.has(id)) await client.freeze(id, false).catch(() => {});
      throw error;
    }
  }

  /** Clears the pause, even if the record has moved. */
  async #takeBack(record: InstanceRecord): Promise<void> {
    const { records } = this.#deps;
    const pausedAt = record.claim?.pausedAt;
    for (let now: InstanceRecord | undefined = record, tries = 0; now; tries += 1) {
      if (pausedAt === undefined || now.claim?.pausedAt !== pausedAt) return this.know(now);
      try {
        return this.know(await records.amend(now.id, { pausedAt: null }, now.revision));
      } catch (error) {
        if (!(error instanceof RecordConflict) || tries === MOST_TRIES) throw error;
        now = (await records.read(now.id))?.record;
      }
    }
  }

  reconcile(instances: readonly InstanceReport[]): void {
    for (const { id, vitals, frozen = false } of instances) {
      const paused = this.#paused.has(id);
      if (vitals.kind === 'gone' || frozen === paused) continue;
      this.#deps.client.freeze(id, paused).catch((error: unknown) => {
        this.#deps.log.warn({ id, paused, error }, 'sandbox-not-paused');
      });
    }
  }
}
