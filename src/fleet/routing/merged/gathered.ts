import { setMaxListeners } from 'node:events';
import { Refusal } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { AnswerRoom } from '../../../actors/sandbox/commands/answer-budget.ts';
import type { WayToCluster } from '../../replication/fleet-operations.ts';
import type { Answer, AnyRequest } from '../../../http/corridor/route.ts';
import type { Context } from '../../../http/reply/context.ts';
import { LONG_BYTES } from '../../../http/reply/long-answer.ts';
import { namedByQuery } from '../../../http/corridor/stages/named-cluster.ts';
import type { FleetDeps } from '../fleet-router.ts';
import { targetOf, type Asked } from '../pass-on.ts';
import { boundsOf, type JsonBounds } from '../../../lib/streams/json-reader.ts';
import { ITEM_BYTES, readObject, type ReadTerms } from '../passed-answer.ts';

const MOST_PART_BYTES = 32 << 20;
const PART_MS = 10_000;

export interface MergedTerms {
  readonly caller: Caller;
  readonly context: Context;
  readonly request: AnyRequest;
  readonly own: (changed: Partial<AnyRequest>) => Promise<Answer> | Answer;
}

export interface ClusterReader {
  readonly clusterId: string;
  /** Rejects unless the cluster answers with 200 and an object. */
  readonly ask: (changed: Asked) => Promise<object>;
}

export interface Gathered<T> {
  /** Begins with the manager's own; the others follow by id. */
  readonly parts: readonly { readonly clusterId: string; readonly part: T }[];
  /** A Warning header names the missing clusters. */
  readonly incomplete: { readonly incomplete?: true };
}

/** `way` is absent for the manager's own. */
export interface AskedCluster {
  readonly clusterId: string;
  readonly way?: WayToCluster;
}

export interface AskedClusters {
  readonly asked: readonly AskedCluster[];
  readonly missing: readonly string[];
}

/** Refuses as FleetOperations.wayTo does for a named cluster. */
export const askedClusters = (
  { fleet, passing }: Pick<FleetDeps, 'fleet' | 'passing'>,
  { query }: Pick<AnyRequest, 'query'>,
): AskedClusters => {
  const clusterId = namedByQuery(query);
  const own = { clusterId: fleet.clusterId };
  if (clusterId !== undefined)
    return {
      asked: [
        clusterId === own.clusterId ? own : { clusterId, way: passing.wayTo(fleet, clusterId) },
      ],
      missing: [],
    };
  const others = fleet.listOthers();
  return {
    asked: [
      own,
      ...others
        .filter(({ status }) => status === 'Connected')
        .map((each) => ({ clusterId: each.clusterId, way: fleet.wayTo(each.clusterId) })),
    ],
    missing: others.filter(({ status }) => status !== 'Connected').map((each) => each.clusterId),
  };
};

/**
 * Counts bytes read from other clusters against the request's share of the answer budget. Throws as
 * AnswerRoom does.
 */
export const countParts = (room: () => AnswerRoom): (() => NonNullable<ReadTerms['took']>) => {
  let all = 0;
  return () => {
    let counted = 0;
    return (bytes) => {
      all += bytes - counted;
      counted = bytes;
      if (all > LONG_BYTES) room().hold(all);
    };
  };
};

export const isOfRequest = (error: unknown): boolean =>
  error instanceof Refusal && error.code !== 'CLUSTER_UNAVAILABLE';

/** Reports a cluster that does not answer in time as missing, or fails if the request names it. */
export const gather = async <T>(
  deps: FleetDeps,
  terms: MergedTerms,
  read: (reader: ClusterReader) => Promise<T>,
): Promise<Gathered<T>> => {
  const { asked, missing } = askedClusters(deps, terms.request);
  const part = countParts(terms.request.room);
  const { parts, silent } = await readEach(deps, { ...terms, asked, part }, read);
  return { parts, incomplete: sayMissing(terms.context, [...missing, ...silent]) };
};

interface Reading {
  readonly signal: AbortSignal;
  readonly part: ReturnType<typeof countParts>;
}

export type EachTerms = MergedTerms & Pick<AskedClusters, 'asked'> & Pick<Reading, 'part'>;

/** Does not report silent clusters. */
export const readEach = async <T>(
  deps: FleetDeps,
  { asked, ...terms }: EachTerms,
  read: (reader: ClusterReader) => Promise<T>,
): Promise<Pick<Gathered<T>, 'parts'> & { readonly silent: readonly string[] }> => {
  const { request } = terms;
  const over = new AbortController();
  const signal = AbortSignal.any([request.signal(), over.signal]);
  setMaxListeners(asked.length + OTHER_LISTENERS, signal); // one listener per cluster
  const silent: string[] = [];
  const ofOne = namedByQuery(request.query) !== undefined;
  const parts = await Promise.all(
    asked.map(async (cluster) => {
      const { clusterId, way } = cluster;
      try {
        return [{ clusterId, part: await read(readerOf(deps, { ...terms, signal }, cluster)) }];
      } catch (error) {
        if (!way || signal.aborted || ofOne || isOfRequest(error)) throw error;
        silent.push(clusterId);
        return [];
      }
    }),
  ).catch((error: unknown) => {
    over.abort(error); // stops reading from the others
    throw error;
  });
  return { parts: parts.flat(), silent };
};

const OTHER_LISTENERS = 10;

export const sayMissing = (
  context: Context,
  missing: readonly string[],
): Gathered<never>['incomplete'] => {
  if (missing.length === 0) return {};
  context.append('Warning', `199 - "no answer from the clusters ${missing.toSorted().join(', ')}"`);
  return { incomplete: true };
};

export const readerOf = (
  deps: FleetDeps,
  terms: MergedTerms & Reading,
  { clusterId, way }: AskedCluster,
): ClusterReader => ({
  clusterId,
  ask: way ? askAway(deps, { ...terms, way }) : askOwn(terms),
});

const askOwn =
  ({ request, own }: MergedTerms): ClusterReader['ask'] =>
  async (changed) =>
    (await own({ query: { ...(request.query as object), ...changed } })).body;

const askAway =
  (
    { passing, surface }: FleetDeps,
    { caller, context, way, signal, part }: MergedTerms & Reading & { readonly way: WayToCluster },
  ): ClusterReader['ask'] =>
  async (changed) => {
    const answer = await passing.pass({
      way,
      caller,
      request: context.req,
      requestId: context.state.requestId,
      signal,
      withinMs: PART_MS,
      base: surface?.base,
      without: surface?.secrets,
      target: targetOf(context, changed),
    });
    if (answer.statusCode !== 200) {
      answer.destroy();
      throw new Error(`the cluster answered ${String(answer.statusCode)}`);
    }
    const work: ReadTerms['work'] = (each) => passing.share.work(way.clusterId, each);
    const terms = { ...partBounds(changed), took: part(), work };
    if (!surface) return await readObject(answer, terms);
    const items = await readObject(answer, { ...terms, takesLists: true });
    return { items, next: answer.headers[surface.nextHeader] };
  };

const partBounds = ({ limit }: Asked): JsonBounds => {
  const bounds = boundsOf(typeof limit === 'number' ? limit : 0, ITEM_BYTES);
  return { ...bounds, mostBytes: Math.min(MOST_PART_BYTES, bounds.mostBytes) };
};
