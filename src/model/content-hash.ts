import { createHash } from 'node:crypto';

/** The same for the same content, in whatever order its fields come. */
export const contentHash = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(inOrder(value))).digest('hex').slice(0, 32);

const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) => [name, inOrder(part)]));
};
