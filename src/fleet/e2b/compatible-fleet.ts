import { isErrorCode } from '../../http/reply/error-table.ts';
import { readName } from '../../http/corridor/local-names.ts';
import type { FleetDeps } from '../routing/fleet-router.ts';
import type { ShownTerms, SurfaceInFleet } from '../routing/passed-answer.ts';
import { clusterUnavailable } from '../../model/fleet/cluster-refusals.ts';
import {
  featureDisabled,
  invalidArgument,
  Refusal,
  type RefusalCode,
} from '../../model/refusals.ts';
import type { Operations } from '../../services/operations.ts';
import { BEFORE_IMAGE } from '../../http/e2b/control/create-sandbox.ts';
import { domainOf, tokensOf, type ShowTerms } from '../../http/e2b/control/presenter.ts';
import { hasCompatibleIds } from '../../http/e2b/sandbox-id.ts';
import { OVER_LINKS } from '../../http/e2b/traffic/over-links.ts';
import { TOKEN_HEADERS } from '../../http/e2b/traffic/token-headers.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { CompatibleApiDeps } from '../../http/e2b/compatible-api.ts';
import type { Clients } from '../../http/limits/clients.ts';
import { managerStages } from '../routing/manager-stages.ts';
import { listedIn, listOverClusters, viewIn } from './list-over-clusters.ts';
import { toCluster } from './to-cluster.ts';

interface InFleetDeps {
  readonly operations: Pick<Operations, 'sandboxTokens'>;
  readonly gate: ShowTerms['gate'];
  readonly terms: {
    readonly clusterId: string;
    readonly templates: ReadonlyMap<string, string>;
    readonly domain: string | undefined;
    readonly waitMs: number;
  };
}

/**
 * Adapts the control API to a manager's clusters: forwards requests whole, and rewrites answers to
 * the manager's names, tokens and domain.
 */
const compatibleInFleet = ({ operations, gate, terms }: InFleetDeps): SurfaceInFleet => {
  const poolOf: SurfaceInFleet['poolOf'] = (asked) => {
    const { templateID, template = templateID } = (asked ?? {}) as Readonly<
      Record<string, unknown>
    >;
    return typeof template === 'string' ? (terms.templates.get(template) ?? template) : undefined;
  };
  return {
    base: OVER_LINKS.control,
    secrets: TOKEN_HEADERS,
    nextHeader: 'x-next-token',
    serves: hasCompatibleIds,
    poolOf,
    clusterOf: (asked) => {
      const [pool = ''] = (poolOf(asked) ?? '').split(BEFORE_IMAGE, 1);
      const clusterId = readName('pool', pool)?.cluster;
      if (clusterId !== undefined && clusterId !== terms.clusterId && !hasCompatibleIds(clusterId))
        throw invalidArgument('templateID', NO_IDS);
      return clusterId;
    },
    poolParameter: 'template',
    waitMs: terms.waitMs,
    claimOf: (body, name) => {
      // keeps ignored fields, such as `template`
      const { templateID } = body as Readonly<Record<string, unknown>>;
      return { ...body, templateID: name ?? poolOf({ templateID }) };
    },
    shown: (body, shown) => {
      if (shown.status >= 400) throwShown(body, shown);
      if (Array.isArray(body)) return body.map((item: unknown) => listedIn(shown.clusterId, item));
      if (!('sandboxID' in body)) return body;
      const { clusterId, caller, base } = shown;
      // the worker's own tokens are not valid here
      const { envdAccessToken: _access, trafficAccessToken: _traffic, ...view } = body as TokensIn;
      const { id, item } = viewIn(clusterId, view);
      const tokens = tokensOf({ operations, gate, caller }, { id, clusterId });
      return { ...item, ...tokens, domain: domainOf(terms, base) };
    },
  };
};

interface TokensIn {
  readonly envdAccessToken?: unknown;
  readonly trafficAccessToken?: unknown;
}

const NO_IDS =
  "names a cluster whose sandboxes have no ids here: the cluster's id must be at most 25 " +
  'characters from a-z and 0-9';

const MOST_WORDS = 1_024;

const throwShown = (body: object, { clusterId, retryAfter }: ShownTerms): void => {
  const { errorCode, error, detail } = body as Readonly<Record<string, unknown>>;
  if (typeof errorCode !== 'string') return; // the row's own format of errors
  const words = typeof error === 'string' ? error.slice(0, MOST_WORDS) : 'it refused';
  if (errorCode === 'NOT_FOUND')
    throw featureDisabled('cluster', `compatible API at the cluster ${clusterId}`);
  if (!isErrorCode(errorCode) || errorCode === 'INTERNAL')
    throw clusterUnavailable(clusterId, `failed: ${words}`);
  throw new Refusal(errorCode as RefusalCode, words, {
    detail: wordsOf(detail),
    retryAfter: /^[0-9]{1,6}$/.test(retryAfter ?? '') ? Number(retryAfter) : undefined,
  });
};

const wordsOf = (detail: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries((detail ?? {}) as Readonly<Record<string, unknown>>)
      .filter(([name, value]) => SHOWN.has(name) && typeof value === 'string')
      .map(([name, value]) => [name, (value as string).slice(0, MOST_WORDS)]),
  );

const SHOWN: ReadonlySet<string> = new Set(['field', 'approvalId', 'message', 'outcome']);

export interface CompatibleFleetDeps extends Omit<InFleetDeps, 'operations'> {
  readonly fleet: FleetDeps;
  readonly operations: Operations;
  readonly clients: Clients;
  readonly clock: Clock;
}

export const compatibleFleet = ({
  fleet,
  operations,
  clients,
  clock,
  ...deps
}: CompatibleFleetDeps): Pick<CompatibleApiDeps['terms'], 'manager' | 'others'> => {
  const surface = compatibleInFleet({ operations, ...deps });
  return {
    manager: managerStages({ ...fleet, surface }, operations, listOverClusters),
    others: {
      listOthers: fleet.fleet.listOthers,
      toCluster: (admitted, request, exchanged) =>
        toCluster({ fleet, clients, clock }, admitted, { request, exchanged }),
    },
  };
};
