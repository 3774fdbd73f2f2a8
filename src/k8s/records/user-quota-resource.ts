import { z } from 'zod';
import { QUANTITY_PATTERN } from '../../model/quantities.ts';
import {
  HIGHEST_LIMIT,
  sizeLimitOf,
  sizeLimitText,
  type UserQuota,
} from '../../model/pools/quota.ts';
import { laterFormat, mendedOf, type Resource } from '../api/resource.ts';
import { FORMAT } from '../api/resource.ts';

const limit = (most: number) => z.int().min(0).max(most).optional();

const sizeLimit = (resource: 'cpu' | 'memory') =>
  z
    .string()
    .max(32)
    .refine((text) => sizeLimitOf(resource, text) !== undefined)
    .meta({ pattern: QUANTITY_PATTERN })
    .optional();

/** Named `{team}.{user}`. A missing limit is the configured one. */
export const UserQuotaSpecSchema = z.object({
  format: z.int().min(1).max(FORMAT).optional(),
  team: z.string(),
  user: z.string(),
  sandboxes: limit(HIGHEST_LIMIT.sandboxes),
  pools: limit(HIGHEST_LIMIT.pools),
  replicas: limit(HIGHEST_LIMIT.replicas),
  cpu: sizeLimit('cpu'),
  memory: sizeLimit('memory'),
});
type UserQuotaSpec = z.infer<typeof UserQuotaSpecSchema>;

/** The right to write these objects is the right to set quotas. */
export const userQuotaResource = ({
  teamOf,
}: {
  readonly teamOf: (namespace: string) => string | undefined;
}): Resource<UserQuota> => ({
  kind: 'UserQuota',
  plural: 'userquotas',
  place: ({ namespace, team, user }) => ({ namespace, name: `${team}.${user}` }),
  find: (key) => {
    const [namespace = '', team = '', user = ''] = key.split('/');
    return { namespace, name: `${team}.${user}` };
  },
  write: ({ team, user, limits: { cpu, memory, ...limits } }) => ({
    spec: {
      format: FORMAT,
      team,
      user,
      ...limits,
      cpu: cpu === undefined ? undefined : sizeLimitText('cpu', cpu),
      memory: memory === undefined ? undefined : sizeLimitText('memory', memory),
    } satisfies UserQuotaSpec,
  }),
  read: (object) => {
    const { metadata, spec: given } = object;
    if (teamOf(metadata.namespace ?? '') === undefined) return { kind: 'ignored' };
    const {
      format = FORMAT,
      team,
      user,
      sandboxes,
      pools,
      replicas,
      ...sizes
    } = given as UserQuotaSpec;
    if (format > FORMAT) return laterFormat(object, format);
    const [cpu, memory] = (['cpu', 'memory'] as const).map((resource) =>
      sizes[resource] === undefined ? undefined : sizeLimitOf(resource, sizes[resource]),
    );
    const limits = {
      ...(cpu === undefined ? {} : { cpu }),
      ...(memory === undefined ? {} : { memory }),
      ...(sandboxes === undefined ? {} : { sandboxes }),
      ...(pools === undefined ? {} : { pools }),
      ...(replicas === undefined ? {} : { replicas }),
    };
    return {
      kind: 'record',
      record: {
        namespace: metadata.namespace ?? '',
        team,
        user,
        limits,
        revision: metadata.resourceVersion,
      },
      ...mendedOf(object),
    };
  },
});
