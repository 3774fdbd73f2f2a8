import { createHash } from 'node:crypto';
import { z } from 'zod';
import { DefinitionRefused } from '../contracts/sandbox-driver.ts';
import { renderDefinition } from '../model/render-definition.ts';
import { SandboxTemplateSchema, type InstanceDefinition, type SandboxTemplateDocument, type TemplateRecord } from '../model/template.ts';
import { API_VERSION, mendedOf, type Fault, type Resource, type ResourceObject } from './resource.ts';
import { FORMAT } from './sandbox-resource.ts';

/** What a daemon adds to a `SandboxTemplate`: `specHash` tells an edit by hand, which makes a new version. */
export const ResolvedTemplateSchema = z.object({
  format: z.int().min(1),
  version: z.string().regex(/^[0-9]{1,15}$/),
  createdAt: z.iso.datetime(),
  specHash: z.string().max(64),
});
type ResolvedTemplate = z.infer<typeof ResolvedTemplateSchema>;

/** `check` throws DefinitionRefused where the driver can't run what the template says. */
export const templateResource = ({ check }: { readonly check: (definition: InstanceDefinition) => void }): Resource<TemplateRecord> => ({
  kind: 'SandboxTemplate',
  plural: 'sandboxtemplates',
  place: ({ name }) => ({ name }),
  find: (name) => ({ name }),
  write: ({ document: { spec }, version, createdAt }) => ({ spec, resolved: resolvedOf(spec, version, new Date(createdAt).toISOString()) }),
  read: (object) => {
    const { metadata, resolved: given } = object;
    const resolved = given as ResolvedTemplate | undefined;
    if (resolved && resolved.format > FORMAT) return { kind: 'too-new', format: resolved.format };
    const document = documentOf(object, check);
    if ('reason' in document) return { kind: 'wrong', object, fault: document };
    if (resolved?.specHash !== hashOf(document.spec)) return { kind: 'unsettled', object };
    const record = { name: metadata.name, revision: metadata.resourceVersion, version: resolved.version, createdAt: Date.parse(resolved.createdAt), document };
    return { kind: 'record', record, ...mendedOf(object) };
  },
  settle: (object) => {
    const known = object.resolved as ResolvedTemplate | undefined;
    const spec = object.spec as SandboxTemplateDocument['spec'];
    return { spec, resolved: resolvedOf(spec, String(Number(known?.version ?? 0) + 1), known?.createdAt ?? object.metadata.creationTimestamp) };
  },
});

const LONGEST_MESSAGE = 1_024;

const documentOf = ({ metadata: { name }, spec }: ResourceObject, check: (definition: InstanceDefinition) => void): SandboxTemplateDocument | Fault => {
  const parsed = SandboxTemplateSchema.safeParse({ apiVersion: API_VERSION, kind: 'SandboxTemplate', metadata: { name }, spec });
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return { reason: 'Invalid', message: faults.join('; ').slice(0, LONGEST_MESSAGE) };
  }
  try {
    check(renderDefinition(parsed.data));
  } catch (error) {
    if (error instanceof DefinitionRefused) return { reason: 'DefinitionRefused', message: error.message.slice(0, LONGEST_MESSAGE) };
    throw error;
  }
  return parsed.data;
};

const resolvedOf = (spec: SandboxTemplateDocument['spec'], version: string, createdAt: string): ResolvedTemplate =>
  ({ format: FORMAT, version, createdAt, specHash: hashOf(spec) });

/** The same for the same content, in whatever order the API server gives it back. */
const hashOf = (spec: unknown): string => createHash('sha256').update(JSON.stringify(inOrder(spec))).digest('hex').slice(0, 32);

const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) => [name, inOrder(part)]));
};
