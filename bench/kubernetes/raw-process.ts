import { silentLog } from '../../src/contracts/log.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import { podsPath } from '../../src/k8s/sandboxes/pods/pod-resource.ts';
import { sandboxesPath } from '../../src/k8s/sandboxes/sandbox-resource.ts';
import { answerOrders } from '../child.ts';
import { until } from '../schedule.ts';
import { RawPods } from './raw-pods.ts';

/** The raw client of every pair: the API server's REST interface over kept connections. */
export type RawOrder = { readonly kubeconfig: string } & (
  | { readonly kind: 'make pods'; readonly namespace: string; readonly count: number }
  /** Claims a Pod each, by its labels. */
  | { readonly kind: 'patch'; readonly count: number; readonly perSecond: number }
  | { readonly kind: 'list'; readonly namespace: string }
);

/** Milliseconds of each request from its scheduled time, or of all the work. */
export type RawResult = readonly number[];

const PAGE = 250;
let client: Promise<ApiClient> | undefined;
let pods: RawPods | undefined;

answerOrders(async (order: RawOrder): Promise<RawResult> => {
  client ??= connected(order.kubeconfig);
  const api = await client;
  const began = performance.now();
  switch (order.kind) {
    case 'make pods':
      pods = await RawPods.make(api, order.namespace, order.count);
      break;
    case 'patch':
      return await patched(api, order);
    case 'list':
      await listBoth(api, order.namespace);
  }
  return [performance.now() - began];
});

const connected = async (kubeconfig: string): Promise<ApiClient> =>
  apiServer({
    metrics: silentMetrics,
    access: await readClusterAccess({ kubeconfig }, silentLog),
    version: 'bench',
  }).lane('claims');

const patched = async (
  api: ApiClient,
  { count, perSecond }: Extract<RawOrder, { kind: 'patch' }>,
): Promise<RawResult> => {
  const began = performance.now() + 10;
  const running: Promise<number>[] = [];
  for (let n = 0; n < count; n += 1) {
    const due = began + (n * 1_000) / perSecond;
    await until(due);
    const one = pods?.claimNext(api).then(() => performance.now() - due);
    if (!one) throw new Error('there are no Pods');
    one.catch(() => undefined); // Promise.all below rejects with it
    running.push(one);
  }
  return await Promise.all(running);
};

const listBoth = async (api: ApiClient, namespace: string): Promise<void> => {
  await Promise.all(
    [sandboxesPath(namespace), podsPath(namespace)].map(async (path) => {
      let next: string | undefined;
      do {
        const { metadata } = (await api.list(
          path,
          { limit: PAGE, continue: next || undefined },
          { deadlineMs: 30_000 },
        )) as { readonly metadata: { readonly continue?: string } };
        next = metadata.continue;
      } while (next);
    }),
  );
};
