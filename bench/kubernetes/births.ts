import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { sandboxesPath } from '../../src/k8s/sandboxes/sandbox-resource.ts';

/** When records appear in a namespace. */
export class PodCreator {
  readonly #over = new AbortController();
  readonly #moments: number[] = [];

  /** From now on. */
  static async begin(api: ApiServer, namespace: string): Promise<PodCreator> {
    const births = new PodCreator();
    const path = sandboxesPath(namespace);
    const {
      metadata: { resourceVersion },
    } = (await api.lane('background').list(path, { limit: 1 })) as {
      readonly metadata: { readonly resourceVersion: string };
    };
    births.#follow(api, path, resourceVersion).catch(() => undefined);
    return births;
  }

  stop(): void {
    this.#over.abort();
  }

  /** How many there were. */
  get count(): number {
    return this.#moments.length;
  }

  /** The longest time in ms without one, from then on. */
  longestPause(from: number): number {
    const moments = [from, ...this.#moments.filter((at) => at > from), performance.now()];
    return Math.max(...moments.slice(1).map((at, n) => at - (moments[n] ?? at)));
  }

  async #follow(api: ApiServer, path: string, from: string): Promise<void> {
    let seen = from;
    while (!this.#over.signal.aborted) {
      for await (const { type, object } of api
        .lane('watches')
        .watch(path, { resourceVersion: seen, timeoutSeconds: 300 }, this.#over.signal)) {
        seen = (object as { readonly metadata: { readonly resourceVersion: string } }).metadata
          .resourceVersion;
        if (type === 'ADDED') this.#moments.push(performance.now());
      }
    }
  }
}
