import type { Cluster } from '../../local-cluster/control-plane/cluster.ts';

/** Requests that the API server has answered, by verb and resource. */
export type ApiCounts = ReadonlyMap<string, number>;

const WRITES = new Set(['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION']);
const READS = new Set(['GET', 'LIST']);
/**
 * What comes and goes with time, whatever Sandpool does, and statuses: at most one a second for
 * each pool and env, however many cycles there are.
 */
const BESIDE = new Set([
  'sandboxpools/status',
  'sandboxenvs/status',
  'leases',
  'nodes',
  'tokenreviews',
  'subjectaccessreviews',
  'selfsubjectaccessreviews',
]);

/**
 * From the API server's own metrics, so that what scheduler, kubelet and controllers write counts
 * too.
 */
export const apiCounts = async (cluster: Cluster): Promise<ApiCounts> => {
  const counts = new Map<string, number>();
  for (const line of (await cluster.kubectl('get', '--raw', '/metrics')).split('\n')) {
    if (!line.startsWith('apiserver_request_total{')) continue;
    const label = (name: string): string =>
      new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '';
    const resource =
      label('subresource') === ''
        ? label('resource')
        : `${label('resource')}/${label('subresource')}`;
    const refused = label('code') >= '400' ? ` (${label('code')})` : '';
    const key = `${label('verb')} ${resource}${refused}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(line.slice(line.lastIndexOf(' ') + 1)));
  }
  return counts;
};

export interface Traffic {
  readonly writes: number;
  readonly reads: number;
  /** The same by verb and resource, for people. */
  readonly text: string;
}

/** What came between two looks. */
export const trafficOf = (before: ApiCounts, after: ApiCounts, per = 1): Traffic => {
  let [writes, reads] = [0, 0];
  const parts: string[] = [];
  for (const [key, count] of after) {
    const [verb = '', resource = ''] = key.split(' ');
    const more = (count - (before.get(key) ?? 0)) / per;
    // Paths without a resource are asked for by kubectl, which brings these numbers.
    if (more <= 0 || BESIDE.has(resource) || resource === '' || resource.startsWith('/')) continue;
    if (WRITES.has(verb)) writes += more;
    else if (READS.has(verb)) reads += more;
    else continue;
    parts.push(`${key} ${more.toFixed(2)}`);
  }
  return { writes, reads, text: parts.toSorted().join(', ') };
};
