import { z } from 'zod';

const MOST_NAMED = 16;
const LONGEST_NAME = 64;

/**
 * Names the fields of a body that its schema does not know, as values of the `Warning` header. They are let pass and
 * nothing of them is kept: a client of a richer service is served, and told. At most 16 are named.
 */
export const unknownFieldWarnings = (schema: z.ZodType): ((body: unknown) => readonly string[]) => {
  if (!(schema instanceof z.ZodObject)) return () => [];
  const known = new Set(Object.keys(schema.shape));
  return (body) => {
    if (typeof body !== 'object' || body === null) return [];
    const warnings: string[] = [];
    for (const name in body) {
      if (known.has(name)) continue;
      if (warnings.length === MOST_NAMED) break;
      warnings.push(`299 - "unknown field ${printable(name)}"`);
    }
    return warnings;
  };
};

/** Fit for a quoted string of a header. */
const printable = (name: string): string => name.slice(0, LONGEST_NAME).replaceAll(/[^\x20-\x7e]/g, '?').replaceAll(/["\\]/g, '\\$&');
