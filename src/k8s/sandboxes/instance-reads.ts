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
  readonly hurry: (pod: StoredPod) => void;
}

/** Includes others with the same mark. */
const MOST_OF_REQUEST = 4;

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
        vitals: { kind: 'gone', exitCode: null, reason: 'the sandbox does not exist' },
      };
    return await this.readIn(known, id);
  }

  /** Reads in the given namespace if the mirror does not know the id. */
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
   * `seen`: the record before its Pod was read. An unclaimed record may have got its Pod, and a
   * claim, since then.
   */
  #found(id: InstanceId, seen: StoredSandbox | undefined): InstanceFact {
    const isPodless =
      !this.#mirror.sandbox(id) || seen?.record.claim !== undefined || this.#mirror.isPodGone(id);
    if (isPodless && !this.#mirror.pod(id)) this.#mirror.foundNoPod(id);
    return (
      this.#mirror.fact(id) ?? {
        id,
        record: undefined,
        vitals: { kind: 'gone', exitCode: null, reason: 'the Pod does not exist' },
      }
    );
  }
}
