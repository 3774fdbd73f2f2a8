/**
 * Gets what the entries themselves have under a name that people gave: every object has a
 * `constructor`.
 */
export const getOwn = <T>(entries: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(entries, name) ? entries[name] : undefined;
