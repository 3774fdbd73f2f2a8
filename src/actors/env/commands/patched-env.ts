import { type EnvOverrides, type EnvRecord } from '../../../model/envs/env.ts';
import { mergePatch } from './merge-patch.ts';
import type { RegistryCredentials } from '../../../model/pools/pool-source.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import { accessField } from '../../../model/tenant.ts';
import type { EnvOperations } from './env-operations.ts';

const MOST_LABELS = 64;

export const patched = (
  env: EnvRecord,
  patch: Parameters<EnvOperations['patchEnv']>[2]['patch'],
  registries: readonly RegistryCredentials[] | undefined,
): EnvRecord => {
  const { overrides = {}, labels = {}, annotations = {}, envDocs, access = env.access } = patch;
  const { access: _access, ...others } = env;
  const merged = {
    ...others,
    ...accessField(access ?? undefined),
    overrides: configured(
      overrides === null ? {} : mergePatch({ ...env.overrides }, overrides),
      registries ? registries.length > 0 : env.overrides.imagePullSecretConfigured === true,
    ),
    labels: texts('labels', labels === null ? {} : mergePatch(env.labels, labels)),
    annotations: texts(
      'annotations',
      annotations === null ? {} : mergePatch(env.annotations, annotations),
    ),
  };
  if (envDocs === undefined) return merged;
  const { envDocs: _before, ...rest } = merged;
  return envDocs === null ? rest : { ...rest, envDocs };
};

const texts = (
  field: string,
  merged: Readonly<Record<string, unknown>>,
): Readonly<Record<string, string>> => {
  const entries = Object.entries(merged);
  if (entries.length > MOST_LABELS)
    throw invalidArgument(field, `must have at most ${MOST_LABELS} entries`);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
};

/** Clients can't set `imagePullSecretConfigured`. */
export const configured = (overrides: EnvOverrides, passwords: boolean): EnvOverrides => {
  const { imagePullSecretConfigured: _asked, ...rest } = overrides;
  return { ...rest, ...(passwords ? { imagePullSecretConfigured: true } : {}) };
};
