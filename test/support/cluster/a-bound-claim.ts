import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';

export interface WantedClaim {
  readonly name: string;
  readonly namespace: string;
  readonly phase?: 'Bound' | 'Pending';
}

/** The status is written by hand: nobody binds it. */
export const aBoundClaim = async (
  cluster: Cluster,
  { name, namespace, phase = 'Bound' }: WantedClaim,
): Promise<void> => {
  const [accessModes, storage] = [['ReadWriteOnce'], '5Gi'];
  await cluster.apply({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace, annotations: { 'sandpool.dev/display-name': `The ${name}` } },
    spec: { storageClassName: 'by-hand', accessModes, resources: { requests: { storage } } },
  });
  const status = { phase, ...(phase === 'Bound' ? { capacity: { storage }, accessModes } : {}) };
  await cluster.patch(['pvc', name, '-n', namespace, '--subresource=status'], { status });
};
