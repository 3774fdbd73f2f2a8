import { omitUndefined } from '../../lib/plain-data.ts';
import { contentHash } from '../../lib/content-hash.ts';
import type { TemplateSpec, VolumeMount } from '../templates/template.ts';

/** Whether new instances take the template's image or that of the overrides. */
export const IMAGE_POLICIES = ['PoolDefaultImage', 'EnvOverrideImage'] as const;
export type ImagePolicy = (typeof IMAGE_POLICIES)[number];

export interface CpuAndMemory {
  readonly cpu?: string;
  readonly memory?: string;
}

/**
 * Credentials for one registry of images. A secret: kept apart from records, never answered, logged
 * or hashed.
 */
export interface RegistryCredentials {
  readonly registry: string;
  readonly username: string;
  readonly password: string;
}

/** Describes what differs from the template. */
export interface PoolOverrides {
  readonly image?: string;
  readonly podCreationImagePolicy?: ImagePolicy;
  /** Durations as text. */
  readonly defaultStartupTimeout?: string;
  readonly defaultIdleTimeout?: string;
  /** Registry passwords are kept, elsewhere; they are never part of a record's own text. */
  readonly imagePullSecretConfigured?: boolean;
  /** Whether endpoints are published; unset: they are. */
  readonly gateway?: { readonly enabled?: boolean };
  /** Whether what Sandpool runs inside a sandbox says more. */
  readonly envd?: { readonly verbose?: boolean };
  readonly volumes?: readonly VolumeMount[];
}

/**
 * Describes what a pool's owner asked for, as it was asked: a template by name or inline, a size,
 * and what differs. What is more particular counts: `cpu` and `memory`, then `inlineResources`,
 * then the instance type, then the template.
 */
export interface PoolSource {
  readonly templateName?: string;
  /** Version that counts of the template by name; unset: what the template says now. */
  readonly templateVersion?: string;
  readonly template?: TemplateSpec;
  readonly instanceType?: string;
  /** Multiplies the instance type; 1 where unset. */
  readonly multiplier?: number;
  readonly cpu?: string;
  readonly memory?: string;
  readonly inlineResources?: { readonly requests?: CpuAndMemory; readonly limits?: CpuAndMemory };
  readonly overrides?: PoolOverrides;
}

/**
 * The image that the overrides put in the place of the template's; undefined where they leave it.
 */
export const imageOf = ({ image, podCreationImagePolicy }: PoolOverrides): string | undefined =>
  podCreationImagePolicy === 'PoolDefaultImage' ? undefined : image;

/** The fields of a PoolSource and nothing else of what is given. */
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

/** Hash of what a source asks for, the same for sources that ask for the same. */
export const sourceHashOf = (source: PoolSource): string => contentHash(sourceOf(source));

/**
 * Changes what was asked for: what is not named stays. A template by name and one inline take each
 * other's place.
 */
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
