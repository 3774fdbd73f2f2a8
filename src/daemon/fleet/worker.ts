import type { Duplex } from 'node:stream';
import type { Config } from '../config/config.ts';
import type { Log } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { newNonce } from '../../fleet/link/fleet-keys.ts';
import { WorkerCredentials } from '../../fleet/link/worker-credentials.ts';
import type { IdentityCheck } from '../../fleet/link/worker-link.ts';
import { WorkerLinks, type WorkerLinksDeps } from '../../fleet/link/worker-links.ts';
import { linkedClients, LinkedCallers } from '../../fleet/routing/linked-clients.ts';
import type { Clients } from '../../http/limits/clients.ts';
import type { ManagerAccess } from '../../fleet/replication/manager-access.ts';
import type { PromotedCopies } from '../../fleet/replication/promoted-copies.ts';
import type { TemplateCopies } from '../../fleet/replication/template-copies.ts';
import type { Assembly } from '../assembly/assembly.ts';
import { sharedClusterKey } from './cluster-key.ts';
import { tellOfManagers } from './fleet-metrics.ts';

export interface WorkerParts {
  readonly callers: LinkedCallers;
  readonly clients: (clients: Clients) => Clients;
  readonly links: () => number;
  readonly follow: () => void;
  readonly start: (accept: (connection: Duplex) => void) => void;
  readonly leave: () => void;
  readonly drained: (withinMs: number) => Promise<void>;
  readonly stop: () => void;
}

interface GivenWorker {
  readonly parts: Pick<Assembly, 'clock'>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly replica: string;
  readonly copies: PromotedCopies;
  readonly templateCopies: TemplateCopies;
  readonly access: ManagerAccess;
}

export const openWorker = (config: Config, given: GivenWorker): WorkerParts | undefined => {
  const { log, metrics, copies, templateCopies, access } = given;
  const { managers } = config.fleet;
  if (managers.length === 0) return undefined;
  const dialling = diallingOf(config, given);
  const callers = new LinkedCallers();
  const checks = new WeakMap<Duplex, IdentityCheck>();
  let links: WorkerLinks | undefined;
  /** Undefined before requests are answered, and after the stop. */
  let open: (() => WorkerLinks) | undefined;
  const heed = (isCutOff: boolean): void => {
    if (!isCutOff) {
      links = open?.();
      return links?.start();
    }
    links?.stop();
    links = undefined;
    copies.cutOff();
    templateCopies.cutOff();
    log.warn({ managers }, 'managers-cut-off');
  };
  const standings = () => links?.standings;
  tellOfManagers(metrics, { addresses: managers, standings, access });
  return {
    callers,
    links: () => links?.size ?? 0,
    follow: () => {
      access.follow((isCutOff) => {
        if (!isCutOff) log.info({ managers }, 'managers-allowed');
        heed(isCutOff);
      });
      if (access.isCutOff) heed(true);
    },
    clients: (clients) =>
      linkedClients({
        clients,
        checkOf: (connection) => checks.get(connection),
        remember: (caller) => {
          callers.remember(caller);
        },
      }),
    start: (accept) => {
      open = () =>
        new WorkerLinks({
          ...dialling,
          serve: (connection, check) => {
            checks.set(connection, check);
            accept(connection);
          },
        });
      if (!access.isCutOff) heed(false);
    },
    leave: () => {
      open = undefined;
      links?.leave();
    },
    drained: async (withinMs) => await links?.drained(withinMs),
    stop: () => links?.stop(),
  };
};

const diallingOf = (
  config: Config,
  { parts: { clock }, log, replica, copies, templateCopies }: GivenWorker,
): Omit<WorkerLinksDeps, 'serve'> => {
  const { assembly, fleet, clusterId, dataDir } = config;
  return {
    ...{ clusterId, replica, clock, log },
    start: assembly === 'embedded' ? newNonce() : undefined,
    credentials: new WorkerCredentials({
      dataDir,
      joinTokenFile: fleet.joinTokenFile,
      key: sharedClusterKey(config),
    }),
    managers: fleet.managers,
    keys: copies,
    templates: templateCopies,
  };
};
