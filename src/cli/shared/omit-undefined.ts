type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without what is undefined, for objects whose fields may be absent but not undefined. */
export const omitUndefined = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;
