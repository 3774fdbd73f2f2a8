import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { installCustomResources } from '../../../local-cluster/custom-resources.ts';

/** A later version's definition of pools accepts format 3. */
export const withLaterDefinitions = async (
  cluster: Cluster,
  work: () => Promise<void>,
): Promise<void> => {
  const path =
    '/spec/versions/0/schema/openAPIV3Schema/properties/resolved/properties/format/maximum';
  const change = JSON.stringify([{ op: 'replace', path, value: 3 }]);
  await cluster.kubectl('patch', 'crd', 'sandboxpools.sandpool.dev', '--type=json', '-p', change);
  try {
    await work();
  } finally {
    await installCustomResources(cluster);
  }
};
