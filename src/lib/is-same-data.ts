import { getOwn } from './get-own.ts';

/** Compares plain data, as JSON has it. A field that is undefined is the same as none. */
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

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null;
