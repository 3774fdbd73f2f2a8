import type { Clock } from '../../contracts/clock.ts';
import type { TemplateClusterView } from '../../services/fleet-views.ts';
import type { FleetLinks, LinkedCluster } from '../../contracts/fleet/cluster-links.ts';
import type { CopyReport } from '../../contracts/fleet/global-templates.ts';
import type { Records } from '../../contracts/record-store.ts';
import { noSuchTemplate } from '../../model/refusals.ts';
import { isGlobalHere } from '../../model/templates/global-template.ts';
import { inParts } from './store-retries.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';

export interface TemplateClustersDeps {
  readonly templates: Pick<Records<TemplateRecord>, 'get'>;
  readonly clock: Clock;
  /** Absent if the daemon is not a manager. */
  readonly links?: Pick<FleetLinks, 'list'> & {
    readonly report: (clusterId: string, globalId: string) => Promise<CopyReport | undefined>;
  };
}

const AT_ONCE = 64;

/** Empty if the template is not global. Refuses with SANDBOX_TEMPLATE_NOT_FOUND. */
export const templateClusters =
  ({ templates, clock, links }: TemplateClustersDeps) =>
  async (name: string): Promise<readonly TemplateClusterView[]> => {
    const record = await templates.get(name);
    if (!record) throw noSuchTemplate();
    if (!links || !isGlobalHere(record)) return [];
    const { globalId, version } = record;
    const clusters = links.list();
    const views = new Map<LinkedCluster, TemplateClusterView>();
    await inParts(clusters, AT_ONCE, async (cluster) => {
      const { clusterId, isConnected } = cluster;
      const report = isConnected ? await links.report(clusterId, globalId) : undefined;
      const view = report && { clusterId, at: clock.now(), ...standing(report, version) };
      views.set(cluster, view ?? unanswered(cluster));
    });
    return clusters.flatMap((cluster) => views.get(cluster) ?? []);
  };

const unanswered = ({ clusterId, lastHeartbeat }: LinkedCluster): TemplateClusterView => ({
  clusterId,
  state: 'Unreachable',
  version: undefined,
  message: undefined,
  at: lastHeartbeat,
});

/** Synced means the last version that the cluster received. */
const standing = (
  { state, version, message }: CopyReport,
  current: string,
): Pick<TemplateClusterView, 'state' | 'version' | 'message'> => ({
  state: state === 'Synced' && version !== current ? 'Pending' : state,
  version,
  message,
});
