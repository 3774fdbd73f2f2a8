import { z } from 'zod';
import { parseDuration } from './durations.ts';
import { DNS_LABEL_FORM, isDnsLabel, type Revision } from './identifiers.ts';
import { parseQuantity } from './quantities.ts';

/**
 * The `SandboxTemplate` document (`apiVersion: sandpool.dev/v1alpha1`), strict: an unknown field is a fault. Resource
 * requests default to the limits. A daemon's driver may take less than the document can say; it refuses the rest by field.
 */

const label = z.string().refine(isDnsLabel, DNS_LABEL_FORM);
const cpu = z.string().refine((text) => inRange(parseQuantity(text), 0.01, 256), 'must be a cpu quantity from 10m to 256');
const memory = z.string().refine((text) => inRange(parseQuantity(text), 16 * 2 ** 20, 2 ** 42), 'must be a memory quantity from 16Mi to 4Ti');
const duration = z.string().refine((text) => parseDuration(text) !== undefined, 'must be a duration such as 90s, 30m or 1h30m; 0 is never');
const startup = z.string().refine((text) => inRange(parseDuration(text), 1_000, 3_600_000), 'must be a duration from 1s to 1h');
const text = (max: number) => z.string().max(max).refine((value) => !value.includes('\0'), 'must not hold a NUL');
const absolutePath = text(1_024).refine((path) => path.startsWith('/') && !path.split('/').includes('..'), 'must be an absolute path without ..');

const inRange = (value: number | undefined, least: number, most: number): boolean =>
  value !== undefined && value >= least && value <= most;

const Resources = z.strictObject({ cpu: cpu.optional(), memory: memory.optional() });

const ContainerSchema = z.strictObject({
  name: label,
  /** `host`: this machine's /usr, read-only. What else there is, the driver says. */
  image: text(512).min(1),
  command: z.array(text(8_192)).min(1).max(64).optional(),
  args: z.array(text(8_192)).max(256).optional(),
  env: z.array(z.strictObject({
    name: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be a variable name'),
    value: text(8_192),
  })).max(128).optional(),
  workingDir: absolutePath.optional(),
  resources: z.strictObject({ requests: Resources.optional(), limits: Resources.optional() }).optional(),
  ports: z.array(z.strictObject({ name: label, containerPort: z.int().min(1).max(65_535) })).max(16).optional(),
});

export const SandboxTemplateSchema = z.strictObject({
  apiVersion: z.literal('sandpool.dev/v1alpha1'),
  kind: z.literal('SandboxTemplate'),
  metadata: z.strictObject({ name: label }),
  spec: z.strictObject({
    description: text(1_024).optional(),
    containers: z.array(ContainerSchema).min(1).max(8),
    startupTimeout: startup.optional(),
    idleTimeout: duration.optional(),
    maxLifetime: duration.optional(),
    network: z.enum(['none', 'host']).optional(),
  }),
});

export type SandboxTemplateDocument = z.infer<typeof SandboxTemplateSchema>;

/** A template as the store keeps it. `version` is a whole number as text, moved by each change. */
export interface TemplateRecord {
  readonly name: string;
  readonly revision: Revision;
  readonly version: string;
  readonly createdAt: number;
  readonly document: SandboxTemplateDocument;
}

/** One container, rendered: every default filled in. Memory in bytes, cpu in cores. */
export interface ContainerDefinition {
  readonly name: string;
  readonly image: string;
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  /** What the template itself names, where its image has a configuration that fills in the rest. Absent for `host`. */
  readonly given?: { readonly command?: readonly string[]; readonly args?: readonly string[]; readonly workingDir?: string };
  readonly cpuCores: number;
  readonly memoryBytes: number;
  readonly ports: Readonly<Record<string, number>>;
}

/** What an instance is started from, rendered. */
export interface InstanceDefinition {
  readonly containers: readonly ContainerDefinition[];
  readonly network: 'none' | 'host';
  readonly startupTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly maxLifetimeMs: number;
  /** As shown on the wire. */
  readonly cpu: string;
  readonly memory: string;
}
