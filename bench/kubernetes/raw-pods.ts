import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { pause } from '../process-facts.ts';
import { inParallel } from './raw-records.ts';

const WRITERS = 16;
const FILL_DEADLINE_MS = 120_000;
const LOOK_EVERY_MS = 100;
const LABEL = 'bench.sandpool.dev/pod';

export class RawPods {
  readonly #paths: readonly string[];
  #claimed = 0;

  private constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  static async make(api: ApiClient, namespace: string, count: number): Promise<RawPods> {
    const path = pathOf(namespace);
    const signal = AbortSignal.timeout(FILL_DEADLINE_MS);
    const names = Array.from({ length: count }, (_, n) => nameOf(n));
    await inParallel(count, WRITERS, async (n) => {
      await api.create(path, podOf(nameOf(n)));
    });
    for (const name of names)
      while (!(await isRunning(api, `${path}/${name}`))) {
        signal.throwIfAborted();
        await pause(LOOK_EVERY_MS);
      }
    return new RawPods(names.map((name) => `${path}/${name}`));
  }

  /** One PATCH of labels and annotations, for one Pod after the other. */
  async claimNext(api: ApiClient): Promise<void> {
    const n = this.#claimed++;
    const path = this.#paths[n % this.#paths.length];
    if (path === undefined) throw new Error('there are no Pods');
    await api.patch(path, {
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

const isRunning = async (api: ApiClient, path: string): Promise<boolean> => {
  const { status } = (await api.get(path)) as { readonly status?: { readonly phase?: string } };
  return status?.phase === 'Running';
};

const pathOf = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`;

const nameOf = (n: number): string =>
  `01932d5a-${String(n).padStart(4, '0')}-7a01-8000-0242ac120002`;

/** As the product makes them. */
const podOf = (name: string): object => ({
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
      },
    ],
  },
});
