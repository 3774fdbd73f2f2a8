import { z } from 'zod';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { QUANTITY_PATTERN } from '../../../model/quantities.ts';
import { HIGHEST_LIMIT, QUOTA_RESOURCES, sizeLimitOf } from '../../../model/pools/quota.ts';
import { Refusal } from '../../../model/refusals.ts';
import type { QuotaChange } from '../../../actors/pool/commands/quota-limits.ts';
import type { PathParams } from '../../corridor/route.ts';
import { clusterID, incomplete, maybe, ofCluster } from '../../corridor/common-schema.ts';

const limit = (most: number) => maybe(z.int().min(0).max(most));

/** Each branch has the error message: zod ignores the union's own if a branch matches the type. */
const sizeLimit = (resource: 'cpu' | 'memory', error: string) =>
  maybe(
    z.union(
      [
        z
          .number()
          .refine(
            (amount) => amount >= 0 && sizeLimitOf(resource, plain(amount)) !== undefined,
            error,
          )
          .meta({ minimum: 0 }),
        z
          .string()
          .refine(
            (text) =>
              text.length <= LONGEST_QUANTITY &&
              (text === 'none' || sizeLimitOf(resource, text) !== undefined),
            error,
          )
          .meta({ pattern: `^none$|${QUANTITY_PATTERN}`, maxLength: LONGEST_QUANTITY }),
      ],
      { error },
    ),
  );

const LONGEST_QUANTITY = 32;

/** Quantities lack exponents. */
const plain = (amount: number): string => amount.toFixed(9).replace(/\.?0+$/, '');

/** Any valid user name exists. */
export const UserPath: PathParams<{ team: string; user: string }> = {
  schema: z.object({
    team: z.string().refine(isDnsLabel).describe('A DNS label.'),
    user: z.string().refine(isDnsLabel).describe('A DNS label.'),
  }),
  otherwise: () => new Refusal('NOT_FOUND', 'there is no such user: team and user are DNS labels'),
};

export const QuotasQuery = z.object({ clusterID });
export const SetQuotasQuery = z.object({ clusterID: ofCluster });

export const SetQuotasBody = z.object({
  sandboxes: limit(HIGHEST_LIMIT.sandboxes).describe('Maximum number of claimed sandboxes.'),
  pools: limit(HIGHEST_LIMIT.pools).describe('Maximum number of pools.'),
  replicas: limit(HIGHEST_LIMIT.replicas).describe(
    'Maximum sum of `replicas` over all their pools.',
  ),
  cpu: sizeLimit(
    'cpu',
    'must be a cpu quantity up to 1000000 cores, such as 16 or "500m", or "none"',
  ).describe(
    'Maximum number of cores of all instances that their pools request: a quantity such as ' +
      '`"16"` or `"500m"`, or a number of cores. `"none"`: the configured limit.',
  ),
  memory: sizeLimit(
    'memory',
    'must be a memory quantity up to 1Pi, such as "64Gi", or "none"',
  ).describe('The same for memory: a quantity such as `"64Gi"`, or a number of bytes.'),
});

export const quotaChangeOf = ({
  cpu,
  memory,
  ...change
}: z.infer<typeof SetQuotasBody>): QuotaChange => ({
  ...change,
  ...(cpu === undefined ? {} : { cpu: unitsOf('cpu', cpu) }),
  ...(memory === undefined ? {} : { memory: unitsOf('memory', memory) }),
});

const unitsOf = (resource: 'cpu' | 'memory', given: string | number): number | 'none' =>
  given === 'none'
    ? 'none'
    : (sizeLimitOf(resource, typeof given === 'number' ? plain(given) : given) ?? 0);

const Quota = z
  .object({
    name: z.string().describe('The user, as `{team}/{user}`.'),
    resource: z
      .enum(QUOTA_RESOURCES)
      .describe('`cpu` and `memory` appear only if they are limited.'),
    limit: z
      .number()
      .describe(
        'In cores for `cpu`, in bytes for `memory`. `used` and `remaining` have the same unit.',
      ),
    used: z
      .number()
      .describe(
        'Includes reservations of requests in progress. May exceed `limit` if the limit was ' +
          'lowered.',
      ),
    remaining: z.number().describe('Amount that is still available.'),
  })
  .meta({ id: 'Quota' });

export const QuotaList = z
  .object({ items: z.array(Quota), total: z.int(), incomplete })
  .meta({ id: 'QuotaList' });

export type QuotaListWire = z.infer<typeof QuotaList>;
