import type { Call, Evidence, Moment } from './history.ts';
import type { Life, Lives } from './lives.ts';
import type { Timeline } from './timeline.ts';
import { keyOf } from './undoing.ts';

/** What the evidence can't decide. */
export interface Excused {
  instance(life: Pick<Life, 'id' | 'namespace' | 'spans'>): boolean;
  /** By `namespace/name`. */
  name(kind: 'pool' | 'env' | 'approval', key: string): boolean;
  call(call: Call): boolean;
}

/** Requests in progress may take effect this long after the store was set back. */
const UNDER_WAY_MS = 10_000;

/**
 * Writes and requests between a store's copy and restore, and the content of namespaces deleted by
 * hand.
 */
export const excusedIn = (
  evidence: Evidence,
  { time, instances }: Pick<Lives, 'instances'> & { readonly time: Timeline },
): Excused => {
  const { rewinds, changes, disturbances } = evidence;
  const lost = new Set<string>();
  for (const { kept, lost: last } of rewinds)
    for (const change of changes)
      if (change.revision > kept && change.revision <= last) lost.add(keyOf(change));
  const rewound = rewinds.map(({ kept, lost: last }): readonly [Moment, Moment] => [
    time.earliest(kept),
    time.latest(last + 1) + UNDER_WAY_MS,
  ]);
  const deleted = disturbances.flatMap(({ namespace, from, to }) =>
    namespace === undefined ? [] : [{ namespace, from, to }],
  );

  const isLost = (id: string): boolean => lost.has(`sandbox /${id}`) || lost.has(`pod /${id}`);
  const bornBefore = (spans: Life['spans'], moment: Moment): boolean =>
    time.earliest(spans[0]?.from ?? 0) <= moment;
  const instance: Excused['instance'] = ({ id, namespace, spans }) =>
    isLost(id) || deleted.some((one) => one.namespace === namespace && bornBefore(spans, one.to));
  const name: Excused['name'] = (kind, key) =>
    lost.has(`${kind} ${key}`) || deleted.some(({ namespace }) => key.startsWith(`${namespace}/`));
  const call: Excused['call'] = ({ user, asked, answer, invoked, completed }) => {
    const namespace = user.split('/')[0] ?? '';
    const id = 'id' in asked ? asked.id : answer?.id;
    const life = id === undefined ? undefined : instances.get(id);
    if (life && instance(life)) return true;
    if (rewound.some(([from, to]) => invoked <= to && completed >= from)) return true;
    if ('pool' in asked && name('pool', `${namespace}/${asked.pool}`)) return true;
    if ('env' in asked && name('env', `${namespace}/${asked.env}`)) return true;
    return deleted.some((one) => one.namespace === namespace && invoked <= one.to);
  };
  return { instance, name, call };
};
