import type { Records } from '../../contracts/record-store.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import type { PoolHost } from '../pool/pool-host.ts';
import { inspectBroken } from './inspect-broken.ts';
import { inspectPool, shownPool } from './inspect-pool.ts';
import type { InspectedActors } from './inspected-actors.ts';

export interface InspectedPoolsDeps {
  readonly pools: PoolHost;
  readonly records: Pick<Records<PoolRecord>, 'get'>;
}

export const inspectedPools = ({ pools, records }: InspectedPoolsDeps): InspectedActors => {
  const recorded = async (uid: string): Promise<PoolRecord | undefined> => {
    const known = pools.recordOf(uid);
    const record = known && (await records.get(`${known.owner.namespace}/${known.name}`));
    return record?.uid === uid ? record : undefined;
  };
  return {
    transitions: pools.actors.transitions,
    keyOf: (text, namespace) => {
      if (pools.recordOf(text)) return text;
      const name = named(text, namespace);
      return pools.index.uidOf(...name) ?? pools.unhosted(...name)?.uid;
    },
    ofPool: (poolUid) => ({ keys: [poolUid] }),
    inspect: (uid) => {
      const whole = pools.whole(uid);
      const since = pools.actors.transitions.current(uid)?.since ?? 0;
      if (whole) return inspectPool(whole, since);
      const record = pools.actors.rebuilds.isBroken(uid) ? pools.recordOf(uid) : undefined;
      const name = record && `${record.owner.namespace}/${record.name}`;
      return name === undefined
        ? undefined
        : inspectBroken({ kind: 'pool', key: uid, name, shardKey: uid }, since);
    },
    durable: async (uid) => {
      const record = await recorded(uid);
      return record && shownPool(record);
    },
    pendingOf: (uid) => pools.actors.pendingOf(uid),
    rebuild: async (uid) => {
      if (pools.actors.pendingOf(uid).length > 0) return 'busy';
      const record = await recorded(uid);
      if (!record || !pools.recordOf(uid)) return 'unknown';
      if (pools.actors.pendingOf(uid).length > 0) return 'busy';
      pools.rebuild(record);
      return 'rebuilt';
    },
  };
};

/** Accepts `{namespace}/{name}`, or a name in the given namespace. */
export const named = (
  text: string,
  namespace: string,
): readonly [namespace: string, name: string] => {
  const at = text.indexOf('/');
  return at < 0 ? [namespace, text] : [text.slice(0, at), text.slice(at + 1)];
};
