import { z } from 'zod';
import { ACCESSES } from '../../model/tenant.ts';
import { DURATION_PATTERN, MAX_DURATION_MS, parseDuration } from '../../model/durations.ts';
import { DNS_LABEL_FORM, DNS_LABEL_PATTERN, isDnsLabel } from '../../model/identifiers.ts';

/** Null unsets the field, so that the inherited value applies. */
export const unsettable = <T extends z.ZodType>(field: z.ZodExactOptional<T>) =>
  maybe(field.unwrap().nullable()).describe(field.description ?? '');

export const NoFields = z.object({});

/**
 * Exactly optional, since JSON lacks undefined. Uses zod's plain optional, which skips a missing
 * field; exactOptional would try to parse it (3 µs a field).
 */
export const maybe = <T extends z.ZodType>(schema: T): z.ZodExactOptional<T> =>
  schema.optional() as unknown as z.ZodExactOptional<T>;

/** A longer name matches nothing. */
export const MAX_REFERENCE = 512;

export const name = z
  .string()
  .refine(isDnsLabel, DNS_LABEL_FORM)
  .meta({ pattern: DNS_LABEL_PATTERN, maxLength: 63 });

/**
 * Without NUL, which arguments, variables and paths can't contain. Uses `refine`: zod's length
 * checks also run on other types, and throw if `length` is an object.
 */
export const text = (longest: number, least = 0) =>
  z
    .string()
    .refine((value) => value.length >= least, `must be at least ${least} characters long`)
    .refine((value) => value.length <= longest, `must be at most ${longest} characters long`)
    .refine((value) => !value.includes('\0'), 'must not contain a NUL')
    .meta({
      pattern: '^[^\\u0000]*$',
      maxLength: longest,
      ...(least > 0 ? { minLength: least } : {}),
    });

export const timestamp = z.iso
  .datetime({ error: 'must be an ISO 8601 timestamp in UTC, such as 2030-01-31T00:00:00Z' })
  .meta({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?Z$' });

export const duration = z
  .string()
  .refine(
    (value) => parseDuration(value) !== undefined,
    'must be a duration such as 90s, 30m or 1h30m; 0 is never',
  )
  .meta({ pattern: DURATION_PATTERN, maxLength: 64 })
  .transform((value) => parseDuration(value) ?? 0);

export const seconds = z
  .int()
  .min(0)
  .max(MAX_DURATION_MS / 1_000)
  .transform((value) => value * 1_000);

export const queryInteger = (least: number, most: number) =>
  z
    .string()
    .regex(/^[0-9]{1,9}$/, 'must be a whole number of at most 9 digits')
    .transform(Number)
    .pipe(z.int().min(least).max(most));

export const limit = queryInteger(1, 1_000).default(20).describe('Maximum number of items.');
export const offset = queryInteger(0, 999_999_999).default(0).describe('Number of items to skip.');

/** `?force` without a value means `true`. */
export const flag = z
  .enum(['true', 'false', ''])
  .transform((value) => value !== 'false')
  .pipe(z.boolean());

export const clusterID = maybe(name).describe(
  'Cluster of a fleet. If absent, a manager answers for all its clusters.',
);

export const ofCluster = clusterID.describe(
  "Cluster of a fleet. Default: the manager's own cluster.",
);

/** The resource is created only on the called cluster; the corridor refuses another id. */
export const clusterMadeHere = maybe(name).describe(
  'Must be the cluster that receives the request. This is the default.',
);

/** Set by a manager if some clusters did not answer. */
export const incomplete = maybe(z.literal(true)).describe(
  'Some clusters of the fleet did not answer; a `Warning` header names them.',
);

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    total: z.int().describe('Exact number of items on all pages.'),
    limit: z.int().describe('`limit` of the request.'),
    offset: z.int().describe('`offset` of the request.'),
    incomplete,
  });

export const textMap = (longestValue: number) =>
  z
    .record(z.string().min(1).max(317), text(longestValue))
    .refine((map) => Object.keys(map).length <= 64, 'must have at most 64 entries')
    .meta({ maxProperties: 64 });

export const access = z
  .enum(ACCESSES)
  .describe(
    "`team`: every user of the owner's team can see it and claim from it, with their own " +
      'key and quota; only the owner and admins can change it. `user`: only the owner can use ' +
      'it. Default: `user`.',
  );

/** Takes milliseconds since the epoch; UTC with `Z`. */
export function timestampOf(milliseconds: number): string;
export function timestampOf(milliseconds: number | undefined): string | undefined;
export function timestampOf(milliseconds: number | undefined): string | undefined {
  return milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();
}
