import type { Cluster, ClusterRoute, Managers, TemplateCluster } from '../client/wire.ts';
import { shortTime, tableOf, type Column } from './rows.ts';
import { fields } from './table.ts';

export const clusterTable = (clusters: readonly Cluster[], wide: boolean): string =>
  tableOf(CLUSTER, clusters, wide);

export const clusterFields = (cluster: Cluster): string => {
  const { clusterID, isLocal, lastHeartbeat, links, latencyMs, route } = cluster;
  const text = fields([
    ['cluster', clusterID],
    ['status', statusOf(cluster)],
    ['invited until', shortTime(cluster.invitedUntil)],
    ['local', isLocal ? 'yes' : 'no'],
    ['heartbeat', shortTime(lastHeartbeat)],
    ['latency', latencyOf(latencyMs)],
    ['links', links],
    ['reached by', route && `replica ${route.manager} of the manager`],
    ...troublesOf(cluster),
  ]);
  return route && route.links.length > 0 ? `${text}\n${tableOf(LINK, route.links, true)}` : text;
};

const troublesOf = ({ copyRefusedAt, route }: Cluster) => {
  const remade = Math.max(0, ...(route?.links ?? []).map(({ keysRemade = 0 }) => keysRemade));
  return [
    [
      'pepper',
      remade > 0 ? `${remade} promoted keys had another pepper and were stored again` : undefined,
    ],
    [
      'runs twice',
      copyRefusedAt && `a copy of its data was refused ${shortTime(copyRefusedAt) ?? ''}`,
    ],
  ] as const;
};

export const templateClusterTable = (clusters: readonly TemplateCluster[]): string =>
  tableOf(TEMPLATE_CLUSTER, clusters, true);

export const managersFields = ({ addresses, cutOff, cutOffAt, links }: Managers): string =>
  fields([
    ['managers', addresses.length === 0 ? 'none' : addresses.join(', ')],
    ['cut off', cutOff ? `since ${String(shortTime(cutOffAt))}` : 'no'],
    ['links', links],
  ]);

/** Invited, and never joined. */
const statusOf = ({ status, invitedUntil }: Cluster): string =>
  invitedUntil === undefined ? status : 'Invited';

const latencyOf = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : `${ms.toFixed(1)} ms`;

const CLUSTER: readonly Column<Cluster>[] = [
  { heading: 'CLUSTER', of: ({ clusterID }) => clusterID },
  { heading: 'STATUS', of: (cluster) => statusOf(cluster) },
  { heading: 'LOCAL', of: ({ isLocal }) => (isLocal ? 'yes' : 'no') },
  { heading: 'HEARTBEAT', of: ({ lastHeartbeat }) => shortTime(lastHeartbeat) },
  { heading: 'LINKS', of: ({ links }) => links },
  { heading: 'LATENCY', of: ({ latencyMs }) => latencyOf(latencyMs) },
  { heading: 'REACHED BY', of: ({ route }) => route?.manager, wide: true },
];

const TEMPLATE_CLUSTER: readonly Column<TemplateCluster>[] = [
  { heading: 'CLUSTER', of: ({ clusterID }) => clusterID },
  { heading: 'VERSION', of: ({ version }) => version },
  { heading: 'STATE', of: ({ state }) => state },
  { heading: 'AT', of: ({ at }) => shortTime(at) },
  { heading: 'WHY', of: ({ message }) => message },
];

const LINK: readonly Column<ClusterRoute['links'][number]>[] = [
  { heading: 'LINK', of: ({ linkID }) => linkID },
  { heading: 'REPLICA', of: ({ replica }) => replica },
  { heading: 'STATUS', of: ({ status }) => status },
  { heading: 'LATENCY', of: ({ latencyMs }) => latencyOf(latencyMs) },
  { heading: 'TEMPLATES', of: ({ takesTemplates }) => (takesTemplates ? 'yes' : 'no') },
  { heading: 'OPENED', of: ({ openedAt }) => shortTime(openedAt) },
];
