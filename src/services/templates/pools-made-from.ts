import type { Records } from '../../contracts/record-store.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

/** All users' pools, except ending ones. */
export const poolsMadeFrom = async (
  pools: Pick<Records<PoolRecord>, 'list'>,
  templateName: string,
): Promise<readonly { readonly name: string; readonly namespace: string }[]> =>
  (await pools.list())
    .filter(({ source, deleting }) => source.templateName === templateName && deleting === false)
    .map(({ name, owner }) => ({ name, namespace: owner.namespace }));
