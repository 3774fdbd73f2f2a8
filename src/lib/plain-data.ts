/**
 * Gets an entry by a name from users. Ignores inherited properties: every object has a
 * `constructor`.
 */
export const getOwn = <T>(entries: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(entries, name) ? entries[name] : undefined;

/** An undefined field equals an absent one. */
export const isSameData = (one: unknown, other: unknown): boolean => {
  if (!isObject(one) || !isObject(other)) return Object.is(one, other);
  if (one === other) return true;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  if (Array.isArray(one) && one.length !== other['length']) return false;
  return (
    Object.keys(one).every((name) => isSameData(getOwn(one, name), getOwn(other, name))) &&
    Object.keys(other).every(
      (name) => Object.hasOwn(one, name) || getOwn(other, name) === undefined,
    )
  );
};

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** A spread then overwrites nothing with undefined. */
export const omitUndefined = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
