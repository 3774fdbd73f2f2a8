import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { inParallel } from './in-parallel.ts';

const WRITERS = 16;
const FILL_DEADLINE_MS = 120_000;
const LABEL = 'bench.sandpool.dev/pod';

/** Pods that belong to nobody. */
export class RawPods {
  readonly #paths: readonly string[];
  #claimed = 0;

  private constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** Resolves once they run. */
  static async make(api: ApiClient, namespace: string, count: number): Promise<RawPods> {
    await RawPods.fill(api, { namespace, count, width: WRITERS });
    return new RawPods(
      Array.from({ length: count }, (_, n) => `${pathOf(namespace)}/${nameOf(n)}`),
    );
  }

  /** Creates Pods, and resolves once as many run. `container`: what differs in theirs. */
  static async fill(
    api: ApiClient,
    {
      namespace,
      count,
      width,
      container = {},
    }: {
      readonly namespace: string;
      readonly count: number;
      readonly width: number;
      readonly container?: object;
    },
  ): Promise<void> {
    const stop = new AbortController();
    const {
      metadata: { resourceVersion },
    } = (await api.list(pathOf(namespace), { limit: 1 })) as {
      readonly metadata: { readonly resourceVersion: string };
    };
    const running = untilRunning(api, {
      namespace,
      count,
      resourceVersion,
      signal: AbortSignal.any([stop.signal, AbortSignal.timeout(FILL_DEADLINE_MS)]),
    });
    running.catch(() => undefined);
    try {
      await inParallel(count, width, async (n) => {
        await api.create(pathOf(namespace), podOf(nameOf(n), container));
      });
      await running;
    } finally {
      stop.abort();
    }
  }

  /** Deletes what `fill` made; resolves once none is left. */
  static async empty(
    api: ApiClient,
    {
      namespace,
      count,
      width,
    }: { readonly namespace: string; readonly count: number; readonly width: number },
  ): Promise<void> {
    await inParallel(count, width, async (n) => {
      await api.remove(`${pathOf(namespace)}/${nameOf(n)}`, { gracePeriodSeconds: 0 });
    });
  }

  /**
   * What the least of the peers does: one PATCH of labels and annotations of one of the Pods, each
   * in its turn.
   */
  async claimNext(api: ApiClient): Promise<void> {
    const n = this.#claimed++;
    const path = this.#paths[n % this.#paths.length];
    if (path === undefined) throw new Error('there are no Pods');
    await api.patch(path, 'application/merge-patch+json', {
      metadata: {
        labels: {
          'bench.sandpool.dev/state': `claimed-${n}`,
          'bench.sandpool.dev/owner': '4d967a30111bf29f0eba01c448b375c1',
        },
        annotations: {
          'bench.sandpool.dev/claim': JSON.stringify({
            team: 'bench',
            user: 'bench',
            claimedAt: '2026-01-01T00:00:00.000Z',
            idleTimeoutMs: 600_000,
            maxLifetimeMs: 0,
          }),
        },
      },
    });
  }
}

const untilRunning = async (
  api: ApiClient,
  {
    namespace,
    count,
    resourceVersion,
    signal,
  }: {
    readonly namespace: string;
    readonly count: number;
    readonly resourceVersion: string;
    readonly signal: AbortSignal;
  },
): Promise<void> => {
  const running = new Set<string>();
  let seen = resourceVersion;
  // The API server ends the watch of whoever is slow for a moment.
  while (!signal.aborted) {
    for await (const { object } of api.watch(
      pathOf(namespace),
      { resourceVersion: seen, labelSelector: LABEL, timeoutSeconds: FILL_DEADLINE_MS / 1_000 },
      signal,
    )) {
      const { metadata, status } = object as {
        readonly metadata: { readonly name: string; readonly resourceVersion: string };
        readonly status?: { readonly phase?: string };
      };
      seen = metadata.resourceVersion;
      if (status?.phase === 'Running') running.add(metadata.name);
      if (running.size >= count) return;
    }
  }
  throw new Error(`${running.size} of ${count} Pods run`);
};

const pathOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;

const nameOf = (n: number): string =>
  `01932d5a-${String(n).padStart(4, '0')}-7a01-8000-0242ac120002`;

/** As the product makes them. */
const podOf = (name: string, container: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { [LABEL]: 'raw', 'bench.sandpool.dev/network': 'none' } },
  spec: {
    restartPolicy: 'Never',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 0,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'main',
        image: 'registry.invalid/sandbox:1',
        command: ['sleep', 'infinity'],
        resources: {
          requests: { cpu: '10m', memory: '16Mi' },
          limits: { cpu: '100m', memory: '64Mi' },
        },
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        ...container,
      },
    ],
  },
});
