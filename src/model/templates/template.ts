import { z } from 'zod';
import { DURATION_PATTERN, parseDuration } from '../durations.ts';
import { DNS_LABEL_FORM, DNS_LABEL_PATTERN, isDnsLabel, type Revision } from '../identifiers.ts';
import { DeviceFields, PlacementFields, type Placement } from './placement.ts';
import { parseQuantity, QUANTITY_PATTERN } from '../quantities.ts';
import {
  PortReference,
  ReadinessProbeSchema,
  type ReadinessProbe,
  type ReadinessProbeDocument,
} from './readiness-probe.ts';

/**
 * The `SandboxTemplate` document (`apiVersion: sandpool.dev/v1alpha1`), strict: an unknown field is
 * a fault. Resource requests default to the limits. A driver may support less, and refuses the rest
 * by field.
 */

const label = z
  .string()
  .refine(isDnsLabel, DNS_LABEL_FORM)
  .meta({ pattern: DNS_LABEL_PATTERN, maxLength: 63 });
export const cpuAmount = z
  .string()
  .refine(
    (text) => inRange(parseQuantity(text), 0.01, 256),
    'must be a cpu quantity from 10m to 256',
  )
  .meta({ pattern: QUANTITY_PATTERN, maxLength: 32 });
export const memoryAmount = z
  .string()
  .refine(
    (text) => inRange(parseQuantity(text), 16 * 2 ** 20, 2 ** 42),
    'must be a memory quantity from 16Mi to 4Ti',
  )
  .meta({ pattern: QUANTITY_PATTERN, maxLength: 32 });
/** 0 means never. */
export const timeout = z
  .string()
  .refine(
    (text) => parseDuration(text) !== undefined,
    'must be a duration such as 90s, 30m or 1h30m; 0 is never',
  )
  .meta({ pattern: DURATION_PATTERN, maxLength: 64 });
export const startupTimeout = z
  .string()
  .refine(
    (text) => inRange(parseDuration(text), 1_000, 3_600_000),
    'must be a duration from 1s to 1h',
  )
  .meta({ pattern: DURATION_PATTERN, maxLength: 64 });
const text = (max: number) =>
  z
    .string()
    .max(max)
    .refine((value) => !value.includes('\0'), 'must not contain a NUL')
    .meta({ pattern: '^[^\\u0000]*$' });
export const absolutePath = text(1_024)
  .refine(
    (path) => path.startsWith('/') && !path.split('/').includes('..'),
    'must be an absolute path without ..',
  )
  .meta({ pattern: '^/[^\\u0000]*$' });

const inRange = (value: number | undefined, least: number, most: number): boolean =>
  value !== undefined && value >= least && value <= most;

const Resources = z.strictObject({ cpu: cpuAmount.optional(), memory: memoryAmount.optional() });

const ContainerSchema = z.strictObject({
  name: label,
  /** `host` is this machine's /usr, read-only. The driver defines further values. */
  image: text(512).min(1),
  command: z.array(text(8_192)).min(1).max(64).optional(),
  args: z.array(text(8_192)).max(256).optional(),
  env: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a variable name'),
        value: text(8_192),
      }),
    )
    .max(128)
    .optional(),
  workingDir: absolutePath.optional(),
  resources: z
    .strictObject({ requests: Resources.optional(), limits: Resources.optional() })
    .optional(),
  ports: z
    .array(z.strictObject({ name: label, containerPort: z.int().min(1).max(65_535) }))
    .max(16)
    .optional(),
  readinessProbe: ReadinessProbeSchema.optional(),
  ...DeviceFields,
});

const EndpointSchema = z.strictObject({
  name: label,
  port: PortReference,
  /** The certificate of https is not verified. */
  scheme: z.enum(['http', 'https']).optional(),
  readinessProbe: ReadinessProbeSchema.optional(),
});

export const POOL_SIZINGS = ['billed', 'free'] as const;

export const SandboxTemplateSchema = z.strictObject({
  apiVersion: z.literal('sandpool.dev/v1alpha1'),
  kind: z.literal('SandboxTemplate'),
  metadata: z.strictObject({ name: label }),
  spec: z
    .strictObject({
      description: text(1_024).optional(),
      docs: text(65_536).optional(),
      poolSizing: z.enum(POOL_SIZINGS).optional(),
      /**
       * Size of the first container in pools without an instance type; ignored if the type does not
       * exist.
       */
      defaults: z
        .strictObject({
          instanceType: label.optional(),
          multiplier: z.number().min(0.01).max(1_000).optional(),
        })
        .optional(),
      containers: z.array(ContainerSchema).min(1).max(8),
      startupTimeout: startupTimeout.optional(),
      idleTimeout: timeout.optional(),
      maxLifetime: timeout.optional(),
      network: z.enum(['none', 'host']).optional(),
      endpoints: z.array(EndpointSchema).max(16).optional(),
      ...PlacementFields,
    })
    .superRefine((spec, context) => {
      for (const { path, message } of portFaults(spec))
        context.addIssue({ code: 'custom', path: [...path], message });
    }),
});

interface PortUsers {
  readonly containers: readonly {
    readonly ports?: readonly { readonly name: string }[];
    readonly readinessProbe?: ReadinessProbeDocument;
  }[];
  readonly endpoints?: readonly {
    readonly name: string;
    readonly port: string | number;
    readonly readinessProbe?: ReadinessProbeDocument;
  }[];
}

/** Duplicate names, names of unknown ports, probes without a port. */
const portFaults = ({
  containers,
  endpoints = [],
}: PortUsers): readonly {
  readonly path: readonly (string | number)[];
  readonly message: string;
}[] => {
  const faults: { path: readonly (string | number)[]; message: string }[] = [];
  const names = new Set<string>();
  const look = (
    path: readonly (string | number)[],
    port: string | number | undefined,
    own: ReadonlySet<string>,
  ): void => {
    if (typeof port === 'string' && !own.has(port))
      faults.push({
        path,
        message: 'must be a port from 1 to 65535, or the name of a port of the container',
      });
  };
  const lookAtProbe = (
    path: readonly (string | number)[],
    probe: ReadinessProbeDocument | undefined,
    terms: { own: ReadonlySet<string>; needed: boolean },
  ): void => {
    for (const kind of ['httpGet', 'tcpSocket'] as const) {
      const action = probe?.[kind];
      if (action && action.port === undefined && terms.needed)
        faults.push({ path: [...path, kind, 'port'], message: 'is required' });
      look([...path, kind, 'port'], action?.port, terms.own);
    }
  };
  containers.forEach(({ ports = [], readinessProbe }, index) => {
    ports.forEach(({ name }, at) => {
      if (names.has(name))
        faults.push({
          path: ['containers', index, 'ports', at, 'name'],
          message: 'is given twice',
        });
      names.add(name);
    });
    lookAtProbe(['containers', index, 'readinessProbe'], readinessProbe, {
      own: new Set(ports.map(({ name }) => name)),
      needed: true,
    });
  });
  endpoints.forEach(({ name, port, readinessProbe }, index) => {
    if (endpoints.findIndex((other) => other.name === name) !== index)
      faults.push({ path: ['endpoints', index, 'name'], message: 'is given twice' });
    look(['endpoints', index, 'port'], port, names);
    lookAtProbe(['endpoints', index, 'readinessProbe'], readinessProbe, {
      own: names,
      needed: false,
    });
  });
  return faults;
};

/**
 * JSON bytes: a pool's object on Kubernetes contains the template twice, and is limited to 1.5 MiB.
 */
export const MAX_TEMPLATE_BYTES = 262_144;

export type SandboxTemplateDocument = z.infer<typeof SandboxTemplateSchema>;
export type TemplateSpec = SandboxTemplateDocument['spec'];

/** Its spec as JSON, without the docs, which don't affect rendering. */
export interface TemplateVersion {
  readonly version: string;
  readonly spec: string;
}

/** `version` is a whole number as text, which each change increments. */
export interface TemplateRecord {
  readonly name: string;
  readonly revision: Revision;
  readonly version: string;
  readonly createdAt: number;
  readonly document: SandboxTemplateDocument;
  /** Hash of the last document from a file; absent if it was created over the API or by kubectl. */
  readonly sourceHash?: string;
  readonly earlier?: readonly TemplateVersion[];
  /** Id on all clusters of a fleet; never reused. */
  readonly globalId?: string;
  /**
   * Fingerprint of the manager, if this is a copy. Empty if this cluster left the manager: the
   * template is its own until the manager returns.
   */
  readonly managedBy?: string;
}

/** Memory in bytes, cpu in cores. */
export interface ContainerDefinition {
  readonly name: string;
  readonly image: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /**
   * The template's own values, if the image's configuration supplies the rest. Absent for `host`.
   */
  readonly given?: {
    readonly command?: readonly string[];
    readonly args?: readonly string[];
    readonly workingDir?: string;
  };
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** Set if less than the limits. */
  readonly requests?: { readonly cpuCores: number; readonly memoryBytes: number };
  readonly extendedResources?: Readonly<Record<string, number>>;
  /** Disk space on its node; defaults to its namespace's limit. */
  readonly ephemeralStorageBytes?: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly readinessProbe?: ReadinessProbe;
}

export interface Endpoint {
  readonly port: number;
  readonly scheme: 'http' | 'https';
}

export interface EndpointDefinition extends Endpoint {
  readonly readinessProbe?: ReadinessProbe;
}

export interface VolumeMount {
  readonly claimName: string;
  readonly mountPath: string;
  readonly subPath?: string;
  readonly readOnly?: boolean;
}

export interface InstanceDefinition {
  readonly containers: readonly ContainerDefinition[];
  readonly network: 'none' | 'host';
  readonly endpoints?: Readonly<Record<string, EndpointDefinition>>;
  /** Set if the endpoints are not published; their probes still count. */
  readonly unpublished?: true;
  readonly volumes?: readonly VolumeMount[];
  /**
   * Images are pulled with the passwords of the pool's owner, or for a member's instance with those
   * of the env with this uid.
   */
  readonly imagePullSecret?: true | string;
  readonly placement?: Placement;
  readonly startupTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxLifetimeMs: number;
  /** As shown in the API. */
  readonly cpu: string;
  readonly memory: string;
}
