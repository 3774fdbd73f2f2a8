import {
  DefinitionRefused,
  OutcomeUnknown,
  RecordConflict,
} from '../../contracts/sandbox-driver.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import { changedClaim, type ClaimChange } from '../../model/claim-change.ts';
import type { Claim, End, InstanceRecord } from '../../model/sandbox.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { isAbsent, isRefused, notFound } from '../api/api-errors.ts';
import { InstanceMirror } from './instance-mirror.ts';
import { PodRemoval } from './pods/pod-removal.ts';
import type { StoredPod } from './pods/pod-resource.ts';
import {
  type Rewriting,
  rewritten,
  sandboxPath,
  storedFrom,
  type StoredSandbox,
} from './sandbox-resource.ts';
import type { InstanceReads } from './instance-reads.ts';

export interface InstanceWriterDeps {
  readonly soon: ApiClient;
  readonly background: ApiClient;
  readonly mirror: InstanceMirror;
  readonly removal: PodRemoval;
  readonly reads: Pick<InstanceReads, 'readIn'>;
}

/** Each at the revision read last. */
const MOST_ATTEMPTS = 4;

export class InstanceWriter {
  readonly #soon: ApiClient;
  readonly #background: ApiClient;
  readonly #mirror: InstanceMirror;
  readonly #removal: PodRemoval;
  readonly #reads: Pick<InstanceReads, 'readIn'>;

  constructor({ soon, background, mirror, removal, reads }: InstanceWriterDeps) {
    this.#soon = soon;
    this.#background = background;
    this.#mirror = mirror;
    this.#removal = removal;
    this.#reads = reads;
  }

  async claim(
    seen: InstanceRecord,
    claim: Claim,
    permitted?: () => boolean,
  ): Promise<InstanceRecord> {
    const { stored, pod } = this.#seen(seen.id, seen.revision);
    return await this.#rewrite(
      { ...seen, state: 'claimed', claim },
      { ...stored, podUid: pod?.uid },
      permitted,
    );
  }

  async amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    if ('pausedAt' in change) throw new DefinitionRefused('Pods cannot be paused');
    const { stored } = this.#seen(id, seen);
    const { claim } = stored.record;
    if (!claim) throw new RecordConflict('it is not claimed');
    return await this.#rewrite({ ...stored.record, claim: changedClaim(claim, change) }, stored);
  }

  async bump(id: InstanceId, revision: Revision): Promise<InstanceRecord> {
    const { stored } = this.#seen(id, revision);
    if (stored.record.claim) throw new RecordConflict('it is claimed');
    return await this.#rewrite(stored.record, { ...stored, bumped: true });
  }

  /**
   * The API server decides, not the mirror: it may lag behind, or show a store that was replaced.
   */
  async retire(id: InstanceId, seen: Revision, namespace: string): Promise<void> {
    const known = this.#mirror.sandbox(id);
    if (known?.record.claim) throw new RecordConflict('it is claimed');
    try {
      await this.#background.remove(sandboxPath(namespace, id), {
        uid: known?.uid,
        resourceVersion: seen,
        propagationPolicy: 'Background',
      });
    } catch (error) {
      if (isRefused(error, 409))
        throw new RecordConflict('it was claimed, or changed', { cause: error });
      if (!isAbsent(error)) throw error;
    }
    const pod = this.#mirror.pod(id);
    if (known) this.#mirror.dropSandbox(id, known.uid);
    if (pod) this.#removal.removeLater(pod);
  }

  /**
   * The Pod's end is the durable note of the reason `deleted`; any other reason is written into the
   * record first.
   */
  async release(id: InstanceId, end: End): Promise<void> {
    const pod = this.#mirror.pod(id);
    if (isEnding(pod) || this.#mirror.isPodGone(id)) return;
    if (end.reason !== 'deleted') await this.#noteEnd(id, end);
    const known = this.#mirror.sandbox(id);
    const namespace = known?.record.poolOwner.namespace ?? pod?.namespace;
    if (namespace === undefined) return;
    const uid = known?.podUid ?? pod?.uid;
    if (uid === undefined) throw new OutcomeUnknown('its Pod is not known yet');
    await this.#removal.remove({ namespace, id, uid });
  }

  async forget(id: InstanceId): Promise<void> {
    const known = this.#mirror.sandbox(id);
    if (!known) return;
    await this.#background
      .remove(sandboxPath(known.record.poolOwner.namespace, id), {
        uid: known.uid,
        propagationPolicy: 'Background',
      })
      .catch(notFound);
    this.#mirror.dropSandbox(id, known.uid);
  }

  #seen(
    id: InstanceId,
    revision: Revision,
  ): { readonly stored: StoredSandbox; readonly pod: StoredPod | undefined } {
    const stored = this.#mirror.sandbox(id);
    if (!stored || stored.terminating || stored.record.revision !== revision)
      throw new RecordConflict('the record has changed since it was read');
    return { stored, pod: this.#mirror.pod(id) };
  }

  async #rewrite(
    record: InstanceRecord,
    of: Rewriting,
    permitted?: () => boolean,
  ): Promise<InstanceRecord> {
    try {
      const stored = storedFrom(
        await this.#soon.replace(
          sandboxPath(record.poolOwner.namespace, record.id),
          rewritten(record, of),
          { permitted },
        ),
      );
      this.#mirror.putSandbox(stored, { quietly: true });
      return stored.record;
    } catch (error) {
      if (isRefused(error, 409) || isAbsent(error))
        throw new RecordConflict('the record was changed or deleted', { cause: error });
      throw error;
    }
  }

  /** The first end wins. */
  async #noteEnd(id: InstanceId, end: End): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const stored = this.#mirror.sandbox(id);
      if (!stored?.record.claim || stored.record.end) return;
      try {
        await this.#rewrite({ ...stored.record, end }, stored);
        return;
      } catch (error) {
        if (!(error instanceof RecordConflict) || attempt === MOST_ATTEMPTS) throw error;
        await this.#reads.readIn(stored.record.poolOwner.namespace, id);
      }
    }
  }
}

const isEnding = (pod: StoredPod | undefined): boolean =>
  pod?.endsBy !== undefined || (pod?.vitals.kind === 'gone' && !pod.vitals.remains);
