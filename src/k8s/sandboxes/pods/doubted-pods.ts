import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import { ConnectionPermits } from '../../api/connection-permits.ts';
import type { ApiClient } from '../../api/api-calls.ts';
import { versionOf } from '../../api/api-objects.ts';
import { notFound } from '../../api/api-errors.ts';
import type { InstanceMirror } from '../instance-mirror.ts';
import { podPath, storedPodOf } from './pod-resource.ts';
import { POOL_LABEL } from '../sandbox-resource.ts';

export interface DoubtedPodsDeps {
  readonly api: Pick<ApiClient, 'get' | 'patch'>;
  readonly mirror: InstanceMirror;
  readonly clock: Clock;
  readonly log: Log;
}

/** A check that gets no turn in time is retried. */
const MOST_LOOKS = 8;
const MOST_WAITING = 100_000;
const PATIENCE_MS = 60_000;
const AGAIN_MS = 5_000;

/**
 * Checks Pods that left the watch without an observed end. Somebody may have removed the label that
 * the watch selects; it is restored then. Only a check that does not find the Pod counts as its
 * end.
 */
export class DoubtedPods {
  readonly #deps: DoubtedPodsDeps;
  readonly #turns = new ConnectionPermits(MOST_LOOKS, MOST_WAITING);
  readonly #cancels = new Map<string, () => void>();
  #stopped = false;

  constructor(deps: DoubtedPodsDeps) {
    this.#deps = deps;
  }

  start(): void {
    const { pods } = this.#deps.mirror;
    pods.onDoubt((key) => {
      this.#look(key);
    });
    for (const key of pods.doubted) this.#look(key);
  }

  stop(): void {
    this.#stopped = true;
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
  }

  #look(key: string): void {
    if (this.#stopped || this.#cancels.has(key)) return;
    this.#cancels.set(key, () => undefined);
    this.#resolve(key)
      .catch((error: unknown) => {
        if (!this.#stopped) this.#deps.log.warn({ key, error }, 'unconfirmed-pod-not-read');
      })
      .finally(() => {
        this.#cancels.delete(key);
        if (this.#stopped || !this.#isDoubted(key)) return;
        const { clock } = this.#deps;
        const cancel = clock.at(clock.now() + AGAIN_MS, () => {
          this.#cancels.delete(key);
          if (this.#isDoubted(key)) this.#look(key);
        });
        this.#cancels.set(key, cancel);
      });
  }

  #isDoubted(key: string): boolean {
    return this.#deps.mirror.pods.of(key).isDoubted(key);
  }

  async #resolve(key: string): Promise<void> {
    const [namespace = ''] = key.split('/');
    const turn = await this.#turns.acquire(namespace, PATIENCE_MS);
    try {
      await this.#read(key);
    } finally {
      turn.release();
    }
  }

  async #read(key: string): Promise<void> {
    const { api, mirror, log } = this.#deps;
    const [namespace = '', name = ''] = key.split('/');
    const path = podPath(namespace, name);
    const pods = mirror.pods.of(key);
    const found = pods.read(key);
    const object = await api.get(path).catch(notFound);
    const version = object === undefined ? undefined : versionOf(object, storedPodOf);
    found(version);
    const pod = pods.get(key);
    const poolUid = pod && mirror.sandbox(pod.id)?.record.poolUid;
    if (!pod?.isUnlabelled || poolUid === undefined) return;
    log.warn({ id: pod.id, namespace, label: POOL_LABEL }, 'pod-label-restored');
    pods.learn(
      versionOf(
        await api.patch(path, {
          metadata: { uid: pod.uid, labels: { [POOL_LABEL]: poolUid } },
        }),
        storedPodOf,
      ),
    );
  }
}
