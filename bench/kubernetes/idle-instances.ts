import { randomUUID } from 'node:crypto';
import { v7 } from 'uuid';
import type { ControlPlane } from '../../local-cluster/control-plane.ts';
import { STAGE_LABEL } from '../../local-cluster/control-plane/kwok-config.ts';
import { podNameOf } from '../../src/model/identifiers.ts';

/** Two operations each; a transaction of etcd takes 128. */
const AT_ONCE = 50;
/** kwok ignores a Pod with this label. */
const LEFT_ALONE = { [STAGE_LABEL]: 'stuck' };

interface Stored {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: object;
    readonly resourceVersion?: string;
    readonly ownerReferences?: readonly object[];
  };
  readonly spec: { readonly poolName?: string };
}

/** Key and value. */
type Entry = readonly [string, object];

/**
 * By copies straight in etcd, which takes seconds; launches would take minutes. No replica may run.
 */
export const copyIdle = async (
  controlPlane: ControlPlane,
  { pools, namespace, count }: { pools: readonly string[]; namespace: string; count: number },
): Promise<void> => {
  const { items } = JSON.parse(
    await controlPlane.kubectl('get', 'sandboxes.sandpool.dev,pods', '-n', namespace, '-o', 'json'),
  ) as { readonly items: readonly Stored[] };
  for (const pool of pools) {
    const sandbox = items.find(({ spec }) => spec.poolName === pool);
    const pod = items.find(
      ({ kind, metadata }) => kind === 'Pod' && metadata.name === sandbox?.metadata.name,
    );
    if (!sandbox || !pod) throw new Error(`the pool ${pool} has no instance`);
    for (let left = count - 1; left > 0; left -= AT_ONCE) {
      const entries = Array.from({ length: Math.min(AT_ONCE, left) }, () =>
        copyOf(sandbox, pod, namespace),
      );
      await putAll(controlPlane.etcd, entries.flat());
    }
  }
};

const copyOf = (sandbox: Stored, pod: Stored, namespace: string): readonly Entry[] => {
  const [name, uid] = [podNameOf(v7()), randomUUID()];
  const copied = ({ metadata, ...rest }: Stored, part: object): object => {
    const { resourceVersion: _resourceVersion, ...kept } = metadata;
    return { ...rest, metadata: { ...kept, name, ...part } };
  };
  const ownerReferences = pod.metadata.ownerReferences?.map((owner) => ({ ...owner, name, uid }));
  const labels = { ...pod.metadata.labels, ...LEFT_ALONE };
  return [
    [`/registry/sandpool.dev/sandboxes/${namespace}/${name}`, copied(sandbox, { uid })],
    [
      `/registry/pods/${namespace}/${name}`,
      copied(pod, { uid: randomUUID(), labels, ownerReferences }),
    ],
  ];
};

const putAll = async (etcdUrl: string, entries: readonly Entry[]): Promise<void> => {
  const base64 = (text: string): string => Buffer.from(text).toString('base64');
  const success = entries.map(([key, value]) => ({
    request_put: { key: base64(key), value: base64(JSON.stringify(value)) },
  }));
  const answer = await fetch(`${etcdUrl}/v3/kv/txn`, {
    method: 'POST',
    body: JSON.stringify({ success }),
  });
  if (!answer.ok) throw new Error(`etcd answered ${answer.status}: ${await answer.text()}`);
};
