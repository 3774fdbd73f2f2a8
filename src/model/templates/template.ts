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
 * a fault. Resource requests default to the limits. A daemon's driver may take less than the
 * document can say; it refuses the rest by field.
 */

const label = z
  .string()
  .refine(isDnsLabel, DNS_LABEL_FORM)
  .meta({ pattern: DNS_LABEL_PATTERN, maxLength: 63 });
/** A cpu quantity that an instance may have. */
export const cpuAmount = z
  .string()
  .refine(
    (text) => inRange(parseQuantity(text), 0.01, 256),
    'must be a cpu quantity from 10m to 256',
  )
  .meta({ pattern: QUANTITY_PATTERN, maxLength: 32 });
/** A memory quantity that an instance may have. */
export const memoryAmount = z
  .string()
  .refine(
    (text) => inRange(parseQuantity(text), 16 * 2 ** 20, 2 ** 42),
    'must be a memory quantity from 16Mi to 4Ti',
  )
  .meta({ pattern: QUANTITY_PATTERN, maxLength: 32 });
/** A duration as text; 0 is never. */
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
  /** `host`: this machine's /usr, read-only. What else there is, the driver says. */
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
  /** How the port is spoken to; of https the certificate is not checked. */
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
      /** For people, at length; as Markdown, if they like. */
      docs: text(65_536).optional(),
      /** Shown, and nothing else. */
      poolSizing: z.enum(POOL_SIZINGS).optional(),
      /**
       * The size of the first container in pools that name no instance type; unheeded where there
       * is no such type.
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

/** Names given twice, names that name no port, probes that lack one. */
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
 * Bytes that a template may be long, as JSON: on Kubernetes a pool's object holds it twice, and
 * such an object 1.5 MiB at most.
 */
export const MAX_TEMPLATE_BYTES = 262_144;

export type SandboxTemplateDocument = z.infer<typeof SandboxTemplateSchema>;
export type TemplateSpec = SandboxTemplateDocument['spec'];

/** One that was: what it said without its docs, from which nothing is rendered, as JSON. */
export interface TemplateVersion {
  readonly version: string;
  readonly spec: string;
}

/** A template as the store keeps it. `version` is a whole number as text, moved by each change. */
export interface TemplateRecord {
  readonly name: string;
  readonly revision: Revision;
  readonly version: string;
  readonly createdAt: number;
  readonly document: SandboxTemplateDocument;
  /**
   * Hash of the document as a file gave it last; absent: it was made over the API, or by kubectl.
   */
  readonly sourceHash?: string;
  /** The versions before this one that are kept, the newest first. */
  readonly earlier?: readonly TemplateVersion[];
  /** It is the same on all clusters of a fleet; no other template ever has this id. */
  readonly globalId?: string;
  /**
   * Fingerprint of the manager whose template this is a copy of; empty: of one that this cluster
   * has left, so that it is the cluster's own until that one is back.
   */
  readonly managedBy?: string;
}

/** One container, rendered: every default filled in. Memory in bytes, cpu in cores. */
export interface ContainerDefinition {
  readonly name: string;
  readonly image: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /**
   * Says what the template itself names, where its image has a configuration that fills in the
   * rest. Absent for `host`.
   */
  readonly given?: {
    readonly command?: readonly string[];
    readonly args?: readonly string[];
    readonly workingDir?: string;
  };
  readonly cpuCores: number;
  readonly memoryBytes: number;
  /** Says what is set aside for it, where that is less than it may use. */
  readonly requests?: { readonly cpuCores: number; readonly memoryBytes: number };
  /** Devices of the node, by their resource's name; absent: none. */
  readonly extendedResources?: Readonly<Record<string, number>>;
  /** Says what it may write to its node's disk; absent: what its namespace says. */
  readonly ephemeralStorageBytes?: number;
  readonly ports: Readonly<Record<string, number>>;
  readonly readinessProbe?: ReadinessProbe;
}

/** A port that is published under a name. */
export interface Endpoint {
  readonly port: number;
  readonly scheme: 'http' | 'https';
}

export interface EndpointDefinition extends Endpoint {
  readonly readinessProbe?: ReadinessProbe;
}

/** A volume of the owner's namespace, as `GET /volumes` lists it, and where it stands inside. */
export interface VolumeMount {
  readonly claimName: string;
  readonly mountPath: string;
  readonly subPath?: string;
  readonly readOnly?: boolean;
}

/** Describes what an instance is started from, rendered. */
export interface InstanceDefinition {
  readonly containers: readonly ContainerDefinition[];
  readonly network: 'none' | 'host';
  /** By name; absent: none. */
  readonly endpoints?: Readonly<Record<string, EndpointDefinition>>;
  /** Set where the endpoints, whose probes count, are not published. */
  readonly unpublished?: true;
  readonly volumes?: readonly VolumeMount[];
  /**
   * Its images are pulled with the passwords that the pool's owner gave; of a member's instance,
   * with those of the env of this uid.
   */
  readonly imagePullSecret?: true | string;
  /** Where its Pod runs; absent: wherever there is room. */
  readonly placement?: Placement;
  readonly startupTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxLifetimeMs: number;
  /** As shown on the wire. */
  readonly cpu: string;
  readonly memory: string;
}
