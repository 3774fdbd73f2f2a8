import { silentLog } from '../../src/contracts/log.ts';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { ApiClient } from '../../src/k8s/api/api-calls.ts';
import { readClusterAccess } from '../../src/k8s/api/cluster-access.ts';
import type { LoadOrder } from '../load-protocol.ts';
import { until } from '../schedule.ts';
import { makeIdle } from './idle-instances.ts';
import { inParallel } from './in-parallel.ts';
import { RawPods } from './raw-pods.ts';
import type { RawAnswer, RawOrder, RawResult } from './raw-protocol.ts';
import { RawRecords } from './raw-records.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/**
 * The raw client of every pair, a process of its own: the API server's REST interface over kept
 * connections, and nothing else.
 */

let api: ApiClient | undefined;
let records: RawRecords | undefined;
let pods: RawPods | undefined;

const NOTHING: RawResult = { latencies: [], tookMs: 0 };

const carryOut = async (order: RawOrder): Promise<RawResult> => {
  if (order.kind === 'open') {
    api = await clientOf(order.kubeconfig);
    return NOTHING;
  }
  const client = has(api);
  switch (order.kind) {
    case 'make records':
      records = await RawRecords.make(client, order.namespace, order.count);
      return NOTHING;
    case 'make pods':
      pods = await RawPods.make(client, order.namespace, order.count);
      return NOTHING;
    case 'make idle':
      await makeIdle(client, await clientOf(order.adminKubeconfig), order);
      return NOTHING;
    case 'give back':
      await records?.giveBack(client);
      return NOTHING;
    case 'claim':
      return await timed(order.count, order.mode, () =>
        order.by === 'patch' ? has(pods).claimNext(client) : put(client, order.by === 'lean put'),
      );
    case 'list':
      return await timed(1, { kind: 'closed', inFlight: 1 }, () => listBoth(client));
    case 'fill':
      return await timed(1, { kind: 'closed', inFlight: 1 }, () => RawPods.fill(client, order));
    case 'empty':
      return await timed(1, { kind: 'closed', inFlight: 1 }, () => RawPods.empty(client, order));
  }
};

const clientOf = async (kubeconfig: string): Promise<ApiClient> =>
  apiServer({
    metrics: silentMetrics,
    access: await readClusterAccess({ kubeconfig }, silentLog),
    version: 'bench',
  }).lane('claims');

const put = async (client: ApiClient, lean: boolean): Promise<void> => {
  const { path, body, done } = has(records).next({ lean });
  done(await client.replace(path, body));
};

const timed = async (
  count: number,
  mode: LoadOrder['mode'],
  act: () => Promise<void>,
): Promise<RawResult> => {
  const latencies: number[] = Array.from({ length: count }, () => 0);
  const one = async (n: number, from: number): Promise<void> => {
    await act();
    latencies[n] = performance.now() - from;
  };
  const began = performance.now();
  if (mode.kind === 'closed')
    await inParallel(count, mode.inFlight, (n) => one(n, performance.now()));
  else {
    const running: Promise<void>[] = [];
    for (let n = 0; n < count; n += 1) {
      const due = began + 10 + (n * 1_000) / mode.perSecond;
      await until(due);
      const settled = one(n, due);
      settled.catch(() => undefined); // told by Promise.all below, later
      running.push(settled);
    }
    await Promise.all(running);
  }
  return { latencies, tookMs: performance.now() - began };
};

const PAGE = 250;

const listBoth = async (client: ApiClient): Promise<void> => {
  await Promise.all(
    ['/apis/sandpool.dev/v1alpha1/sandboxes', '/api/v1/pods'].map(async (path) => {
      let next: string | undefined;
      do {
        const { metadata } = (await client.list(
          path,
          { limit: PAGE, ...(next ? { continue: next } : {}) },
          { deadlineMs: 30_000 },
        )) as { readonly metadata: { readonly continue?: string } };
        next = metadata.continue;
      } while (next);
    }),
  );
};

const has = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('it was not made before');
  return value;
};

process.on('message', (order: RawOrder) => {
  carryOut(order)
    .then(
      (result): RawAnswer => ({ result }),
      (error: unknown): RawAnswer => ({
        failed: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }),
    )
    .then(
      (answer) => process.send?.(answer),
      () => undefined,
    );
});
process.on('disconnect', () => process.exit(0));
