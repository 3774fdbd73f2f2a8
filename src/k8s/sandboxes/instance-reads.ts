import { podNameOf, type InstanceId } from '../../model/identifiers.ts';
import type { InstanceFact } from '../../model/sandbox.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { notFound } from '../api/api-errors.ts';
import { InstanceMirror } from './instance-mirror.ts';
import { listPageOf } from '../api/api-objects.ts';
import { podPath, storedPodOf, type StoredPod } from './pods/pod-resource.ts';
import {
  REQUEST_LABEL,
  requestLabel,
  sandboxPath,
  sandboxesPath,
  storedFrom,
  storedSandboxOf,
  type StoredSandbox,
} from './sandbox-resource.ts';

export interface InstanceReadsDeps {
  readonly api: ApiClient;
  readonly mirror: InstanceMirror;
  /** Is told of a Pod that may be one to remove. */
  readonly hurry: (pod: StoredPod) => void;
}

/** Records that one request can have claimed, with what others marked alike. */
const MOST_OF_REQUEST = 4;

/** Reads records and Pods of instances uncached, and tells the mirror. */
export class InstanceReads {
  readonly #api: ApiClient;
  readonly #mirror: InstanceMirror;
  readonly #hurry: (pod: StoredPod) => void;

  constructor({ api, mirror, hurry }: InstanceReadsDeps) {
    this.#api = api;
    this.#mirror = mirror;
    this.#hurry = hurry;
  }

  async read(id: InstanceId): Promise<InstanceFact> {
    const known =
      this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? this.#mirror.pod(id)?.namespace;
    if (known === undefined)
      return {
        id,
        record: undefined,
        vitals: { kind: 'gone', exitCode: null, reason: 'there is no such sandbox' },
      };
    return await this.readIn(known, id);
  }

  /** An id that no mirror shows is looked for in the namespace given. */
  async confirm(id: InstanceId, namespace: string): Promise<InstanceFact> {
    return await this.readIn(this.#mirror.sandbox(id)?.record.poolOwner.namespace ?? namespace, id);
  }

  async findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]> {
    const found = await this.#api.list(sandboxesPath(namespace), {
      labelSelector: `${REQUEST_LABEL}=${requestLabel(markKey)}`,
      limit: MOST_OF_REQUEST,
    });
    const stored = listPageOf(found).items.flatMap((object) => storedSandboxOf(object) ?? []);
    return await Promise.all(stored.map((each) => this.factOf(each)));
  }

  /** Reads one in a namespace. */
  async readIn(namespace: string, id: InstanceId): Promise<InstanceFact> {
    const look = this.#mirror.look(namespace, id);
    const found = await this.#api.get(sandboxPath(namespace, id)).catch(notFound);
    const stored = found === undefined ? undefined : storedFrom(found);
    const pod = await this.#readPod(namespace, id);
    look.foundPod(pod);
    look.foundSandbox(stored);
    if (stored && pod?.uid !== stored.podUid) this.#mirror.lostPod(stored);
    return this.#found(id, stored);
  }

  /** Reads the Pod of a record that was read, uncached, and tells what is known of the sandbox. */
  async factOf(stored: StoredSandbox): Promise<InstanceFact> {
    const { id, poolOwner } = stored.record;
    const look = this.#mirror.look(poolOwner.namespace, id);
    const pod = await this.#readPod(poolOwner.namespace, id);
    look.foundPod(pod);
    if (pod?.uid !== stored.podUid) this.#mirror.lostPod(stored);
    return this.#found(id, stored);
  }

  async #readPod(namespace: string, id: InstanceId): Promise<StoredPod | undefined> {
    const found = await this.#api.get(podPath(namespace, podNameOf(id))).catch(notFound);
    const pod = found === undefined ? undefined : storedPodOf(found);
    if (pod) this.#hurry(pod);
    return pod;
  }

  /**
   * Tells what is known after a look: what the watch told meanwhile is newer than what was found.
   * `seen`: the record, as it was before its Pod was looked for. One that was unclaimed then may
   * have got its Pod since, and have been claimed.
   */
  #found(id: InstanceId, seen: StoredSandbox | undefined): InstanceFact {
    const isPodless =
      !this.#mirror.sandbox(id) || seen?.record.claim !== undefined || this.#mirror.isPodGone(id);
    if (isPodless && !this.#mirror.pod(id)) this.#mirror.foundNoPod(id);
    return (
      this.#mirror.fact(id) ?? {
        id,
        record: undefined,
        vitals: { kind: 'gone', exitCode: null, reason: 'there is no such Pod' },
      }
    );
  }
}
