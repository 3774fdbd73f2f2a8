import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { sandboxNotFound } from '../../model/refusals.ts';
import { compatibleId, hasCompatibleIds, sandboxNamed } from '../../http/e2b/sandbox-id.ts';

/** Returns an item of a list of another cluster, by the names that lead there. */
export const listedIn = (clusterId: string, item: unknown): object => viewIn(clusterId, item).item;

/**
 * Returns the same of what shows a sandbox, and the sandbox. Refuses with CLUSTER_UNAVAILABLE what
 * shows none of the cluster's own.
 */
export const viewIn = (
  clusterId: string,
  view: unknown,
): { readonly id: InstanceId; readonly item: object } => {
  const shown = (view ?? {}) as Readonly<Record<string, unknown>>;
  const { sandboxID, templateID } = shown;
  const sandbox = typeof sandboxID === 'string' ? sandboxNamed(sandboxID) : undefined;
  if (!hasCompatibleIds(clusterId)) throw sandboxNotFound();
  if (!sandbox || sandbox.clusterId !== undefined || typeof templateID !== 'string')
    throw clusterUnavailable(clusterId, 'names a sandbox as no cluster does');
  const item = {
    ...shown,
    sandboxID: compatibleId(sandbox.id, clusterId),
    templateID: `${clusterId}::${templateID}`,
  };
  return { id: sandbox.id, item };
};
