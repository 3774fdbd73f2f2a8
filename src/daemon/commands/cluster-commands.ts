import type { AuditSink } from '../../contracts/audit.ts';
import type { ControlCommands } from '../control/control-server.ts';
import type { ClusterRegistry } from '../../fleet/link/cluster-registry.ts';
import type { ManagerLinks } from '../../fleet/link/manager-links.ts';
import { auditedCommand, textOf } from './audited-command.ts';

interface Deps {
  readonly registry: Pick<ClusterRegistry, 'invite' | 'remove'>;
  readonly links: Pick<ManagerLinks, 'dismiss'>;
}

export const clusterCommands = (
  { registry, links }: Deps,
  audit: AuditSink | undefined,
): ControlCommands => {
  const command = auditedCommand(audit);
  const cluster = { field: 'clusterID', as: 'clusterID' };
  return {
    '/clusters/join-token': command('makeJoinToken', cluster, (body) =>
      registry.invite(textOf(body, 'clusterID')),
    ),
    '/clusters/remove': command('removeCluster', cluster, async (body) => {
      const clusterID = textOf(body, 'clusterID');
      await registry.remove(clusterID);
      await links.dismiss(clusterID);
      return { clusterID, status: 'removed' };
    }),
  };
};
