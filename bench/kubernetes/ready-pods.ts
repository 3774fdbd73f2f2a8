import { podsPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { eventually } from '../../local-cluster/eventually.ts';

interface SeenPod {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** When the API server told a watch that Pods of a namespace are ready. */
export class ReadyPods {
  readonly #over = new AbortController();
  /** By name, of `performance.now()`. */
  readonly #moments = new Map<string, number>();

  /** From now on. */
  static async begin(api: ApiServer, namespace: string): Promise<ReadyPods> {
    const ready = new ReadyPods();
    const {
      metadata: { resourceVersion },
    } = (await api.lane('background').list(podsPath(namespace), { limit: 1 })) as {
      readonly metadata: { readonly resourceVersion: string };
    };
    ready.#follow(api, podsPath(namespace), resourceVersion).catch(() => undefined);
    return ready;
  }

  stop(): void {
    this.#over.abort();
  }

  /** Waits for the word, which may come after whoever acted on it. */
  async momentOf(name: string): Promise<number> {
    await eventually(() => this.#moments.has(name), `${name} is seen to be ready`);
    return this.#moments.get(name) ?? Number.NaN;
  }

  async #follow(api: ApiServer, path: string, from: string): Promise<void> {
    let seen = from;
    while (!this.#over.signal.aborted) {
      for await (const { object } of api
        .lane('watches')
        .watch(path, { resourceVersion: seen, timeoutSeconds: 300 }, this.#over.signal)) {
        const { metadata, status } = object as SeenPod;
        seen = metadata.resourceVersion;
        const isReady = status?.conditions?.some(
          (condition) => condition.type === 'Ready' && condition.status === 'True',
        );
        if (isReady && !this.#moments.has(metadata.name))
          this.#moments.set(metadata.name, performance.now());
      }
    }
  }
}
