/** Keys map to shards by pool uid. The replica with a shard's lease does its autonomous work. */
export const SHARDS = 16;

export const shardOf = (poolUid: string): number => {
  let hash = 0;
  for (let i = 0; i < poolUid.length; i++) hash = (hash * 31 + poolUid.charCodeAt(i)) >>> 0;
  return hash % SHARDS;
};
