import type { Records } from '../../contracts/record-store.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';

/** Lists all users' pools that use a template, except ending pools. */
export const poolsMadeFrom = async (
  pools: Pick<Records<PoolRecord>, 'list'>,
  templateName: string,
): Promise<readonly { readonly name: string; readonly namespace: string }[]> =>
  (await pools.list())
    .filter(({ source, deleting }) => source.templateName === templateName && deleting === false)
    .map(({ name, owner }) => ({ name, namespace: owner.namespace }));
