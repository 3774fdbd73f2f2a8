import { z } from 'zod';
import { IMAGE_POLICIES } from '../../../model/pools/pool-source.ts';
import {
  absolutePath,
  cpuAmount,
  MAX_TEMPLATE_BYTES,
  memoryAmount,
  SandboxTemplateSchema,
  startupTimeout,
  timeout,
} from '../../../model/templates/template.ts';
import { MAX_REFERENCE, maybe, name, text, unsettable } from '../../corridor/common-schema.ts';

export const Amounts = z.object({ cpu: maybe(cpuAmount), memory: maybe(memoryAmount) });

const relativePath = text(1_024).refine(
  (path) => !path.startsWith('/') && !path.split('/').includes('..'),
  'must be a relative path without ..',
);

const Volume = z.object({
  claimName: text(253, 1).describe('One of `GET /volumes`.'),
  mountPath: absolutePath.describe('Mount path in the sandbox.'),
  subPath: maybe(relativePath).describe(
    'Folder of the volume to mount instead of the whole volume: a relative path without ' +
      '`..`. Created if it is missing.',
  ),
  readOnly: maybe(z.boolean()),
});

export const PublicOverrides = z.object({
  image: maybe(text(512, 1)).describe("Image of the first container, instead of the template's."),
  podCreationImagePolicy: maybe(z.enum(IMAGE_POLICIES)).describe(
    "`PoolDefaultImage`: new instances use the template's image, and `image` is ignored.",
  ),
  defaultStartupTimeout: maybe(startupTimeout),
  defaultIdleTimeout: maybe(timeout).describe('Idle timeout of sandboxes whose claim sets none.'),
  imagePullSecretConfigured: maybe(z.boolean()).describe('Only in answers. Ignored in requests.'),
  gateway: maybe(z.object({ enabled: maybe(z.boolean()) })).describe(
    '`enabled: false`: endpoints are not published.',
  ),
  envd: maybe(z.object({ verbose: maybe(z.boolean()) })).describe(
    '`verbose: true`: the agent in the sandbox logs more.',
  ),
  volumes: maybe(z.array(Volume).max(16)).describe('Volumes mounted into every container.'),
});

export const ImagePullSecret = z.object({
  registries: z
    .array(z.object({ registry: text(253, 1), username: text(1_024, 1), password: text(4_096, 1) }))
    .max(16),
});

const InlineTemplate = SandboxTemplateSchema.shape.spec.refine(
  (spec) => Buffer.byteLength(JSON.stringify(spec)) <= MAX_TEMPLATE_BYTES,
  `must be at most ${MAX_TEMPLATE_BYTES} bytes long, as JSON`,
);

/** Without secrets, for records. */
export const RecordedPoolFields = {
  templateName: maybe(text(MAX_REFERENCE)).describe(
    'One of the [templates](templates.md). Required if there is neither `template` nor ' +
      '`overrides.image`.',
  ),
  templateVersion: maybe(text(15)).describe('Template version that a member of a pinned env uses.'),
  template: maybe(InlineTemplate).describe(
    "The `spec` of a [template](templates.md), at most 256 KiB, instead of a template's " +
      'name. Unknown fields are refused.',
  ),
  instanceType: maybe(name).describe(
    'One of `GET /instancetypes`, for the size of the first container.',
  ),
  multiplier: maybe(z.number().min(0.01).max(1_000)).describe(
    'Multiplier of the instance type, at most its `maxMultiplier`.',
  ),
  cpu: maybe(cpuAmount).describe(
    'CPU of the first container. Takes precedence over every other setting of it.',
  ),
  memory: maybe(memoryAmount).describe(
    'Memory of the first container. Takes precedence over every other setting of it.',
  ),
  inlineResources: maybe(z.object({ requests: maybe(Amounts), limits: maybe(Amounts) })).describe(
    'Resources of the first container. Takes precedence over the instance type. A request ' +
      'without a limit leaves the limit unchanged, or raises it to the request.',
  ),
  overrides: maybe(PublicOverrides).describe('Differences from the template.'),
};

const { templateVersion: _envsAlone, ...requestFields } = RecordedPoolFields;

/** For requests: with the write-only registry passwords. */
export const PoolSourceFields = {
  ...requestFields,
  overrides: maybe(
    PublicOverrides.extend({
      imagePullSecret: maybe(ImagePullSecret).describe('Write-only. Replaces the previous value.'),
    }),
  ).describe('Differences from the template.'),
};

const given = PublicOverrides.shape;

/** Null unsets any field except the template. */
export const PoolSourceChangeFields = {
  ...requestFields,
  instanceType: unsettable(requestFields.instanceType),
  multiplier: unsettable(requestFields.multiplier),
  cpu: unsettable(requestFields.cpu),
  memory: unsettable(requestFields.memory),
  inlineResources: unsettable(requestFields.inlineResources),
  overrides: unsettable(
    maybe(
      z.object({
        image: unsettable(given.image),
        podCreationImagePolicy: unsettable(given.podCreationImagePolicy),
        defaultStartupTimeout: unsettable(given.defaultStartupTimeout),
        defaultIdleTimeout: unsettable(given.defaultIdleTimeout),
        imagePullSecretConfigured: given.imagePullSecretConfigured,
        gateway: unsettable(given.gateway),
        envd: unsettable(given.envd),
        volumes: unsettable(given.volumes),
        imagePullSecret: unsettable(maybe(ImagePullSecret)).describe(
          'Write-only. Replaces the previous value; null removes it.',
        ),
      }),
    ).describe('Differences from the template.'),
  ),
};
