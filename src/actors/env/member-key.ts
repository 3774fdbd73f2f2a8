/** Names a member or a group of an env among all: `{env uid}/{name}`. */
export const keyOf = (envUid: string, name: string): string => `${envUid}/${name}`;

/** The reverse of `keyOf`. */
export const partsOf = (key: string): readonly [envUid: string, name: string] => {
  const at = key.indexOf('/');
  return [key.slice(0, at), key.slice(at + 1)];
};
