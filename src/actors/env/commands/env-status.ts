import type { PublishedCondition, PublishedStatus } from '../../../contracts/record-store.ts';
import { shardOf } from '../../../model/shards.ts';
import { viewOfPool } from '../../pool/start-hindrance.ts';
import { isDegraded } from '../../../model/pools/pool-condition.ts';
import { publishedOf } from '../../pool/commands/pool-status.ts';
import { observedMembers, type EnvViewDeps } from './env-view.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';

export interface EnvStatusDeps extends EnvViewDeps {
  readonly supervisor: Pick<Supervisor, 'pools' | 'index' | 'sandbox'>;
}

/** Undefined if this replica does not lead the env. Counts have the names of `GET /envs/{name}`. */
export const envStatus = (deps: EnvStatusDeps, uid: string): PublishedStatus | undefined => {
  const record = deps.envs.get(uid);
  if (!record || !deps.supervisor.pools.actors.leads(shardOf(uid))) return undefined;
  const members = observedMembers(deps, record);
  const sum = (count: 'desired' | 'running' | 'idle'): number =>
    members.reduce((total, member) => total + member[count], 0);
  return {
    namespace: record.owner.namespace,
    name: record.name,
    fields: {
      memberCount: members.length,
      desiredReplicas: sum('desired'),
      runningReplicas: sum('running'),
      idleReplicas: sum('idle'),
    },
    conditions: [...deps.conditions.now(record).map(publishedOf), degradationOf(deps, uid)],
    undecided: false,
    pending: false,
  };
};

const degradationOf = (
  { supervisor, members }: Pick<EnvStatusDeps, 'supervisor' | 'members'>,
  uid: string,
): PublishedCondition => {
  const degraded = members.members(uid).flatMap(({ name, fact }) => {
    const pool = fact.pool && supervisor.pools.get(fact.pool.uid);
    const word = pool && viewOfPool(supervisor, pool).conditions.find(isDegraded);
    return word ? [{ reason: word.reason, message: `${name}: ${word.message}` }] : [];
  });
  const [first] = degraded;
  return first
    ? {
        type: 'Degraded',
        status: 'True',
        reason: first.reason,
        message: degraded.map(({ message }) => message).join('; '),
      }
    : { type: 'Degraded', status: 'False', reason: 'AsExpected', message: '' };
};
