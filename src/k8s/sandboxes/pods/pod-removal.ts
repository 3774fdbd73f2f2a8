import type { Clock } from '../../../contracts/clock.ts';
import { podNameOf } from '../../../model/identifiers.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { isAbsent, isRefused } from '../../api/api-errors.ts';
import type { InstanceMirror } from '../instance-mirror.ts';
import { podPath, type StoredPod } from './pod-resource.ts';

export interface PodRemovalDeps {
  readonly soon: ApiClient;
  readonly background: ApiClient;
  readonly mirror: InstanceMirror;
  readonly clock: Clock;
  readonly graceSeconds: number;
  readonly gone: (uid: string) => void;
  readonly run: (work: string, running: Promise<unknown>) => void;
}

type OnePod = Pick<StoredPod, 'namespace' | 'id' | 'uid'>;

/** A Pod may exceed its deadline this long. */
const OVERTIME_MS = 5_000;

export class PodRemoval {
  readonly #deps: PodRemovalDeps;
  readonly #hurried = new Set<string>();

  constructor(deps: PodRemovalDeps) {
    this.#deps = deps;
  }

  /** Resolves once the deletion has begun; a missing Pod counts as deleted. */
  async remove(pod: OnePod): Promise<void> {
    await this.#remove(pod, this.#deps.soon, this.#deps.graceSeconds);
  }

  removeLater(pod: OnePod): void {
    // The cluster's garbage collector would delete it too, but later.
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
      // A Pod with another uid is not ours.
      if (!isAbsent(error) && !isRefused(error, 409)) throw error;
    }
    const known = mirror.pod(id);
    if (known?.uid === uid) mirror.dropPod(known);
    else mirror.foundNoPod(id);
    gone(uid);
  }

  /**
   * Force-deletes a Pod that has exceeded its deadline. It then counts as gone, although its
   * processes may continue on a lost node.
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
