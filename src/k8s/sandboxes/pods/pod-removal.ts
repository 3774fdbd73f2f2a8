import type { Clock } from '../../../contracts/clock.ts';
import { podNameOf } from '../../../model/identifiers.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { isAbsent, isRefused } from '../../api/api-errors.ts';
import type { InstanceMirror } from '../instance-mirror.ts';
import { podPath, type StoredPod } from './pod-resource.ts';

export interface PodRemovalDeps {
  /** For what a request waits for. */
  readonly soon: ApiClient;
  readonly background: ApiClient;
  readonly mirror: InstanceMirror;
  readonly clock: Clock;
  /** Seconds between the polite and the hard end. */
  readonly graceSeconds: number;
  /** Nothing can be in the Pod any more. */
  readonly gone: (uid: string) => void;
  readonly run: (work: string, running: Promise<unknown>) => void;
}

type OnePod = Pick<StoredPod, 'namespace' | 'id' | 'uid'>;

/** Milliseconds that a Pod may outlive the time by which it should have ended. */
const OVERTIME_MS = 5_000;

/** Ends Pods, by their uid. */
export class PodRemoval {
  readonly #deps: PodRemovalDeps;
  /** By uid. */
  readonly #hurried = new Set<string>();

  constructor(deps: PodRemovalDeps) {
    this.#deps = deps;
  }

  /** Resolves once it is told to end; one that is not there counts as done. */
  async remove(pod: OnePod): Promise<void> {
    await this.#remove(pod, this.#deps.soon, this.#deps.graceSeconds);
  }

  /** Has the Pod end as `remove` does, but in the background, behind what requests wait for. */
  removeLater(pod: OnePod): void {
    // Without this the cluster's garbage collection would come to it, later.
    this.#deps.run(
      'delete a retired Pod',
      this.#remove(pod, this.#deps.background, this.#deps.graceSeconds),
    );
  }

  async #remove(
    { namespace, id, uid }: OnePod,
    api: ApiClient,
    graceSeconds: number,
  ): Promise<void> {
    const { mirror, gone } = this.#deps;
    try {
      await api.remove(podPath(namespace, podNameOf(id)), {
        uid,
        gracePeriodSeconds: graceSeconds,
      });
      if (graceSeconds > 0) return;
    } catch (error) {
      // Another Pod of its name is none of ours.
      if (!isAbsent(error) && !isRefused(error, 409)) throw error;
    }
    const known = mirror.pod(id);
    if (known?.uid === uid) mirror.dropPod(known);
    else mirror.foundNoPod(id);
    gone(uid);
  }

  /**
   * One that outlives its end is ended without grace: its node is slow, or lost. From then on it
   * counts as gone, though what a lost node runs may run on.
   */
  hurry({ namespace, id, uid, endsBy, isForced }: StoredPod): void {
    if (
      endsBy === undefined ||
      isForced ||
      this.#hurried.has(uid) ||
      this.#deps.clock.now() < endsBy + OVERTIME_MS
    )
      return;
    this.#hurried.add(uid);
    this.#deps.run(
      'end a Pod that outlives its end',
      this.#remove({ namespace, id, uid }, this.#deps.background, 0).finally(() => {
        this.#hurried.delete(uid);
      }),
    );
  }
}
