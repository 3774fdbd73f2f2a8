/**
 * Gets an entry by a name from users. Ignores inherited properties: every object has a
 * `constructor`.
 */
export const getOwn = <T>(entries: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(entries, name) ? entries[name] : undefined;
