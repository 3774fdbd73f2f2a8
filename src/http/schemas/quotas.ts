import { z } from 'zod';
import { isDnsLabel } from '../../model/identifiers.ts';
import { HIGHEST_LIMIT, QUOTA_RESOURCES } from '../../model/quota.ts';
import { Refusal } from '../../model/refusals.ts';
import type { PathParams } from '../route.ts';
import { maybe } from './common.ts';

const limit = (most: number) => maybe(z.int().min(0).max(most));

/** A user exists as soon as somebody names them, so only what can be no name is not there. */
export const UserPath: PathParams<{ team: string; user: string }> = {
  schema: z.object({ team: z.string().refine(isDnsLabel).describe('A DNS label.'), user: z.string().refine(isDnsLabel).describe('A DNS label.') }),
  otherwise: () => new Refusal('NOT_FOUND', 'there is no such user: team and user are DNS labels'),
};

export const SetQuotasBody = z.object({
  sandboxes: limit(HIGHEST_LIMIT.sandboxes).describe('How many they may have claimed at one time.'),
  pools: limit(HIGHEST_LIMIT.pools).describe('How many they may own.'),
  replicas: limit(HIGHEST_LIMIT.replicas).describe('How many they may ask for, over all their pools.'),
});

const Quota = z.object({
  name: z.string().describe('Whose: `{team}/{user}`.'),
  resource: z.enum(QUOTA_RESOURCES),
  limit: z.int(),
  used: z.int().describe('With what requests under way have reserved. May be more than `limit`, where that was lowered.'),
  remaining: z.int().describe('How many more will be granted.'),
}).meta({ id: 'Quota' });

export const QuotaList = z.object({ items: z.array(Quota), total: z.int() }).meta({ id: 'QuotaList' });

export type QuotaListWire = z.infer<typeof QuotaList>;
