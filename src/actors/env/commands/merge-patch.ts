/** RFC 7396: null removes a field, objects merge, other values replace. */
export type Patch = Readonly<Record<string, unknown>>;

export const mergePatch = (target: Patch, patch: Patch): Patch => {
  const result: Record<string, unknown> = { ...target };
  for (const [name, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) delete result[name];
    else if (isObject(value)) {
      const before = result[name];
      result[name] = mergePatch(isObject(before) ? before : {}, value);
    } else result[name] = value;
  }
  return result;
};

const isObject = (value: unknown): value is Patch =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
