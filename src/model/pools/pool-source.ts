import { omitUndefined } from '../../lib/plain-data.ts';
import { contentHash } from '../../lib/content-hash.ts';
import type { TemplateSpec, VolumeMount } from '../templates/template.ts';

export const IMAGE_POLICIES = ['PoolDefaultImage', 'EnvOverrideImage'] as const;
export type ImagePolicy = (typeof IMAGE_POLICIES)[number];

export interface CpuAndMemory {
  readonly cpu?: string;
  readonly memory?: string;
}

/** Secret: stored apart from records, never returned, logged or hashed. */
export interface RegistryCredentials {
  readonly registry: string;
  readonly username: string;
  readonly password: string;
}

export interface PoolOverrides {
  readonly image?: string;
  readonly podCreationImagePolicy?: ImagePolicy;
  readonly defaultStartupTimeout?: string;
  readonly defaultIdleTimeout?: string;
  /** The passwords are never part of a record. */
  readonly imagePullSecretConfigured?: boolean;
  /** Defaults to true. */
  readonly gateway?: { readonly enabled?: boolean };
  readonly envd?: { readonly verbose?: boolean };
  readonly volumes?: readonly VolumeMount[];
}

/**
 * A pool owner's request, unchanged. The most specific value wins: `cpu` and `memory`, then
 * `inlineResources`, then the instance type, then the template.
 */
export interface PoolSource {
  readonly templateName?: string;
  /** If unset, the current version. */
  readonly templateVersion?: string;
  readonly template?: TemplateSpec;
  readonly instanceType?: string;
  /** Multiplies the instance type; defaults to 1. */
  readonly multiplier?: number;
  readonly cpu?: string;
  readonly memory?: string;
  readonly inlineResources?: { readonly requests?: CpuAndMemory; readonly limits?: CpuAndMemory };
  readonly overrides?: PoolOverrides;
}

export const imageOf = ({ image, podCreationImagePolicy }: PoolOverrides): string | undefined =>
  podCreationImagePolicy === 'PoolDefaultImage' ? undefined : image;

export const sourceOf = ({
  templateName,
  templateVersion,
  template,
  instanceType,
  multiplier,
  cpu,
  memory,
  inlineResources,
  overrides,
}: PoolSource): PoolSource => ({
  ...(templateName === undefined ? {} : { templateName }),
  ...(templateVersion === undefined ? {} : { templateVersion }),
  ...(template === undefined ? {} : { template }),
  ...(instanceType === undefined ? {} : { instanceType }),
  ...(multiplier === undefined ? {} : { multiplier }),
  ...(cpu === undefined ? {} : { cpu }),
  ...(memory === undefined ? {} : { memory }),
  ...(inlineResources === undefined ? {} : { inlineResources }),
  ...(overrides === undefined ? {} : { overrides }),
});

/** Equal for equivalent sources. */
export const sourceHashOf = (source: PoolSource): string => contentHash(sourceOf(source));

/** Absent fields stay. A named template and an inline template replace each other. */
export const mergedSource = (before: PoolSource, change: PoolSource): PoolSource => {
  const kept: { -readonly [Field in keyof PoolSource]: PoolSource[Field] } = { ...before };
  if (change.templateName !== undefined || change.template !== undefined) {
    delete kept.templateName;
    delete kept.template;
  }
  const overrides = { ...before.overrides, ...omitUndefined(change.overrides ?? {}) };
  return sourceOf({
    ...kept,
    ...omitUndefined(change),
    ...(isEmpty(overrides) ? {} : { overrides }),
  });
};

const isEmpty = (object: object): boolean => Object.keys(object).length === 0;
