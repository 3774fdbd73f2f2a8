import { DEFAULT_UPDATE_STRATEGY, type PoolRecord } from './pool.ts';
import type { PoolSource } from './pool-source.ts';

/**
 * Paths are in the API's notation, such as `overrides.image`. Ignores fields that can't be unset.
 */
export const withoutFields = (record: PoolRecord, paths: readonly string[]): PoolRecord => {
  if (paths.length === 0) return record;
  const isUnset = (path: string): boolean => paths.includes(path);
  const { minReplicas, maxReplicas, access, labels, annotations, updateStrategy, ...rest } = record;
  const { autoUpdate, maxUnavailable } = isUnset('updateStrategy')
    ? DEFAULT_UPDATE_STRATEGY
    : updateStrategy;
  return {
    ...rest,
    minReplicas: isUnset('minReplicas') ? undefined : minReplicas,
    maxReplicas: isUnset('maxReplicas') ? undefined : maxReplicas,
    access: isUnset('access') ? undefined : access,
    labels: isUnset('labels') ? {} : labels,
    annotations: isUnset('annotations') ? {} : annotations,
    updateStrategy: {
      autoUpdate: isUnset('updateStrategy.autoUpdate')
        ? DEFAULT_UPDATE_STRATEGY.autoUpdate
        : autoUpdate,
      maxUnavailable: isUnset('updateStrategy.maxUnavailable')
        ? DEFAULT_UPDATE_STRATEGY.maxUnavailable
        : maxUnavailable,
    },
    source: sourceWithout(record.source, isUnset),
  };
};

const UNSETTABLE = ['instanceType', 'multiplier', 'cpu', 'memory', 'inlineResources'] as const;

const PASSWORDS: Readonly<Record<string, string>> = {
  imagePullSecretConfigured: 'imagePullSecret',
};

const sourceWithout = (
  { overrides = {}, ...source }: PoolSource,
  isUnset: (path: string) => boolean,
): PoolSource => {
  const kept: { -readonly [Field in keyof PoolSource]: PoolSource[Field] } = { ...source };
  for (const field of UNSETTABLE) if (isUnset(field)) delete kept[field];
  const left = Object.entries(isUnset('overrides') ? {} : overrides).filter(
    ([field]) => !isUnset(`overrides.${PASSWORDS[field] ?? field}`),
  );
  return left.length === 0 ? kept : { ...kept, overrides: Object.fromEntries(left) };
};
