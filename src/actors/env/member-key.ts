import { shardOf } from '../../model/shards.ts';

/** Names a member or a group of an env among all: `{env uid}/{name}`. */
export const keyOf = (envUid: string, name: string): string => `${envUid}/${name}`;

/** The reverse of `keyOf`. */
export const partsOf = (key: string): readonly [envUid: string, name: string] => {
  const at = key.indexOf('/');
  return [key.slice(0, at), key.slice(at + 1)];
};

/** How actors whose keys are `{env uid}/{name}` hear that this replica decides for them. */
export const ledWithEnv = {
  shardOf: (key: string): number => shardOf(partsOf(key)[0]),
  lead: (now: number) => ({ type: 'LEAD' as const, now }),
  follow: { type: 'FOLLOW' as const },
};
