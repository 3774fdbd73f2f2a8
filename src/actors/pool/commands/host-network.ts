import type { Supervisor } from '../../sandbox/supervisor.ts';

/** Undefined if no pool is on the host's network. Contains no pool's name. */
export const hostNetworkWarning = ({ pools }: Pick<Supervisor, 'pools'>): string | undefined => {
  const { ids } = pools.index.list(undefined, 0, Number.POSITIVE_INFINITY);
  const count = ids.filter((uid) => pools.get(uid)?.record.definition.network === 'host').length;
  if (count === 0) return undefined;
  return (
    `${count === 1 ? 'a pool has' : `${count} pools have`} network: host: sandboxes share ` +
    "this machine's network"
  );
};
