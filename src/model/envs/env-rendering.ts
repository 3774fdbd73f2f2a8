import { isSameData } from '../../lib/plain-data.ts';
import type { EnvMember, EnvRecord, MemberConfig } from './env.ts';
import { DEFAULT_UPDATE_STRATEGY, type PoolRecord } from '../pools/pool.ts';
import { accessField } from '../tenant.ts';
import { sourceOf, type PoolOverrides, type PoolSource } from '../pools/pool-source.ts';

export type RenderedEnvSpec = Pick<EnvRecord, 'templateRef' | 'overrides' | 'access'>;

/** Excludes `replicas`; their bounds are only in the env. */
export type MemberPoolPart = Pick<
  PoolRecord,
  'source' | 'updateStrategy' | 'labels' | 'annotations' | 'access'
>;

/**
 * The most specific layer wins: the member's own size, then the env's overrides, then the template
 * in the env's pinned version, else its current version.
 */
export const memberSourceOf = (
  { templateRef, overrides }: RenderedEnvSpec,
  { instanceType, multiplier, inlineResources }: MemberConfig,
): PoolSource => {
  const { updateStrategy: _notTheSource, ...rest } = overrides;
  return sourceOf({
    templateName: templateRef.name,
    ...(templateRef.version === undefined ? {} : { templateVersion: templateRef.version }),
    ...(instanceType === undefined ? {} : { instanceType }),
    ...(multiplier === undefined ? {} : { multiplier }),
    ...(inlineResources === undefined ? {} : { inlineResources }),
    ...(isEmpty(rest) ? {} : { overrides: rest satisfies PoolOverrides }),
  });
};

/** The member's own `updateStrategy` overrides the env's, field by field. */
export const memberPoolPart = (
  env: RenderedEnvSpec,
  { config }: Pick<EnvMember, 'config'>,
): MemberPoolPart => ({
  source: memberSourceOf(env, config),
  updateStrategy: {
    ...DEFAULT_UPDATE_STRATEGY,
    ...env.overrides.updateStrategy,
    ...config.updateStrategy,
  },
  labels: config.labels ?? {},
  annotations: config.annotations ?? {},
  ...accessField(env.access),
});

export const matchesSpec = (pool: PoolRecord, part: MemberPoolPart): boolean =>
  isSameData(partOf(pool), part);

/** If the source changed, the caller must still render the definition. */
export const withSpec = (
  { access: _before, ...pool }: PoolRecord,
  part: MemberPoolPart,
): PoolRecord => ({
  ...pool,
  ...part,
  ...(isSameData(pool.source, part.source) ? {} : { unrendered: true as const }),
});

export const saysTheSame = (before: EnvAndMember, next: EnvAndMember): boolean =>
  isSameData(askedOf(before), askedOf(next));

interface EnvAndMember {
  readonly env: EnvRecord | undefined;
  readonly member: EnvMember | undefined;
}

const askedOf = ({ env, member }: EnvAndMember): unknown => [
  env?.templateRef,
  env?.overrides,
  env?.access,
  env?.deleting,
  member?.config,
  member?.deleting,
];

const partOf = ({
  source,
  updateStrategy,
  labels,
  annotations,
  access,
}: PoolRecord): MemberPoolPart => ({
  source,
  updateStrategy,
  labels,
  annotations,
  ...accessField(access),
});

const isEmpty = (object: object): boolean => Object.keys(object).length === 0;
