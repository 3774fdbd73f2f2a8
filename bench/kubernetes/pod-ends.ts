import { eventually } from '../../local-cluster/eventually.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { podsPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';

interface SeenPod {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
}

/** Which Pods of a namespace a watch has told to be gone. */
export class PodEnds {
  readonly #over = new AbortController();
  readonly #waiting = new Map<string, () => void>();
  readonly #gone = new Set<string>();

  /** From now on. */
  static async begin(api: ApiServer, namespace: string): Promise<PodEnds> {
    const ends = new PodEnds();
    const path = podsPath(namespace);
    const {
      metadata: { resourceVersion },
    } = (await api.lane('background').list(path, { limit: 1 })) as {
      readonly metadata: { readonly resourceVersion: string };
    };
    // whoever waits finds that it takes too long
    ends.#follow(api, path, resourceVersion).catch(() => undefined);
    return ends;
  }

  stop(): void {
    this.#over.abort();
  }

  /** Resolves at the moment of the word. */
  async until(name: string): Promise<void> {
    if (this.#gone.has(name)) return;
    await Promise.race([
      new Promise<void>((resolve) => {
        this.#waiting.set(name, resolve);
      }),
      eventually(() => this.#gone.has(name), `${name} is gone`),
    ]);
  }

  async #follow(api: ApiServer, path: string, from: string): Promise<void> {
    let seen = from;
    while (!this.#over.signal.aborted) {
      for await (const { type, object } of api
        .lane('watches')
        .watch(path, { resourceVersion: seen, timeoutSeconds: 300 }, this.#over.signal)) {
        const { metadata } = object as SeenPod;
        seen = metadata.resourceVersion;
        if (type !== 'DELETED') continue;
        this.#gone.add(metadata.name);
        this.#waiting.get(metadata.name)?.();
      }
    }
  }
}
