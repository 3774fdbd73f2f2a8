type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/**
 * Drops fields that are undefined: the objects are spread over others, or their fields are
 * counted.
 */
export const omitUndefined = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;
