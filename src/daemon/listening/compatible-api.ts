import type { Config } from '../config/config.ts';
import type { Log } from '../../contracts/log.ts';
import {
  createCompatibleApi,
  type CompatibleApiDeps,
  type CompatibleServer,
} from '../../http/e2b/compatible-api.ts';
import { compatibleFleet } from '../../fleet/e2b/compatible-fleet.ts';
import type { FleetDeps } from '../../fleet/routing/fleet-router.ts';
import type { HttpServer } from '../../http/server/http-server.ts';
import { listenOrDoWithout } from './listen-or-do-without.ts';

export interface CompatibleApiParts extends Pick<HttpServer, 'leave' | 'renew' | 'stop'> {
  readonly overLinks: CompatibleServer['overLinks'] | undefined;
  /**
   * Rejects if a configured address can't be used. Undefined if another program has the default
   * port, or the API is off.
   */
  start(): Promise<string | undefined>;
}

interface CompatibleApiGiven extends Omit<CompatibleApiDeps, 'terms'> {
  readonly fleet: FleetDeps | undefined;
  readonly given: boolean;
}

/** `given`: the address was configured explicitly. */
export const openCompatibleApi = (
  { compatibleApi, clusterId }: Config,
  { given, fleet, ...deps }: CompatibleApiGiven,
): CompatibleApiParts => {
  const { listen, domain, wait, templates, images, imageWait, openPorts, withoutPause } =
    compatibleApi;
  if (listen === 'none') return NONE;
  const terms = {
    clusterId,
    domain,
    waitMs: wait,
    templates: new Map(templates.map(pairOf)),
    images,
    openPorts: openPorts === 'on',
    imageWaitMs: imageWait,
    withoutPause,
  };
  const ofFleet = fleet && compatibleFleet({ ...deps, terms, fleet });
  const server = createCompatibleApi({ ...deps, terms: { ...terms, ...ofFleet } });
  return {
    ...server,
    overLinks: deps.clients.isLinked && server.overLinks,
    start: () =>
      startAt(server, { ...listen, given, isTls: deps.tls !== undefined }, deps.watchers.log),
  };
};

const NONE: CompatibleApiParts = {
  overLinks: undefined,
  start: async () => undefined,
  leave: () => undefined,
  renew: () => undefined,
  stop: async () => undefined,
};

const pairOf = (text: string): [string, string] => {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
};

interface Listen {
  readonly host: string;
  readonly port: number;
  readonly given: boolean;
  readonly isTls: boolean;
}

const startAt = async (
  server: HttpServer,
  { isTls, ...at }: Listen,
  log: Log,
): Promise<string | undefined> => {
  const place = await listenOrDoWithout({
    ...at,
    setting: 'compatibleApi.listen',
    listen: async (where) => (await server.start(where)).port,
    taken: (fields) => {
      log.warn(fields, 'compatible-api-not-served');
    },
  });
  if (place === undefined) return undefined;
  const address = `${isTls ? 'https' : 'http'}://${place}`;
  log.info({ address }, 'compatible-api-served');
  return address;
};
