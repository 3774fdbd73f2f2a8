import { z } from 'zod';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import { contentHash } from '../../lib/content-hash.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import {
  SandboxTemplateSchema,
  type InstanceDefinition,
  type SandboxTemplateDocument,
  type TemplateRecord,
  type TemplateSpec,
} from '../../model/templates/template.ts';
import { isCopy, isGlobalHere, ownTemplate } from '../../model/templates/global-template.ts';
import { keptOf, MOST_VERSIONS, versionOf } from '../../model/templates/template-versions.ts';
import {
  API_VERSION,
  laterFormat,
  mendedOf,
  type Fault,
  type Resource,
  type ResourceObject,
} from '../api/resource.ts';
import { FORMAT } from '../api/resource.ts';

/** `specHash` reveals edits by hand, which create a new version. */
export const ResolvedTemplateSchema = z.object({
  format: z.int().min(1).max(FORMAT),
  version: z.string().regex(/^[0-9]{1,15}$/),
  createdAt: z.iso.datetime(),
  specHash: z.string().max(64),
  sourceHash: z.string().max(64).optional(),
  globalId: z.string().max(64).optional(),
  managedBy: z.string().max(64).optional(),
  /**
   * Newest first, including this version: after an edit by hand it is the only copy of the earlier
   * one.
   */
  versions: z
    .array(z.object({ version: z.string().regex(/^[0-9]{1,15}$/), spec: z.string() }))
    .max(MOST_VERSIONS)
    .optional(),
});
type ResolvedTemplate = z.infer<typeof ResolvedTemplateSchema>;

/** `check` throws DefinitionRefused if the driver cannot run the template. */
export const templateResource = ({
  check,
}: {
  readonly check: (definition: InstanceDefinition) => void;
}): Resource<TemplateRecord> => ({
  kind: 'SandboxTemplate',
  plural: 'sandboxtemplates',
  place: ({ name }) => ({ name }),
  find: (name) => ({ name }),
  write: (record) => ({
    spec: record.document.spec,
    resolved: resolvedOf(record, new Date(record.createdAt).toISOString()),
  }),
  read: (object) => {
    const { metadata, resolved: given } = object;
    const resolved = given as ResolvedTemplate | undefined;
    if (resolved && resolved.format > FORMAT) return laterFormat(object, resolved.format);
    const document = documentOf(object, check);
    if ('reason' in document)
      return isEditedCopy(object, resolved)
        ? { kind: 'uninitialized', object } // it is put back
        : { kind: 'wrong', object, fault: document };
    if (resolved?.specHash !== contentHash(document.spec)) return { kind: 'uninitialized', object };
    const { version, createdAt, sourceHash, globalId, managedBy } = resolved;
    const [, ...earlier] = resolved.versions ?? [];
    const record = {
      name: metadata.name,
      revision: metadata.resourceVersion,
      version,
      createdAt: Date.parse(createdAt),
      document,
      ...(sourceHash === undefined ? {} : { sourceHash }),
      ...(earlier.length > 0 ? { earlier } : {}),
      ...(globalId === undefined ? {} : { globalId }),
      ...(managedBy === undefined ? {} : { managedBy }),
    };
    return { kind: 'record', record, ...mendedOf(object) };
  },
  initialize: initialized,
});

/** A manager's copy keeps its version. */
const initialized = (object: ResourceObject) => {
  const {
    version = '0',
    createdAt = object.metadata.creationTimestamp,
    versions = [],
    ...kept
  } = (object.resolved ?? {}) as Partial<ResolvedTemplate>;
  const [before, ...earlier] = versions;
  // only the manager changes its copy; the copy's replica restores its documents
  if (before && isCopy(kept)) {
    const spec = JSON.parse(before.spec) as TemplateSpec;
    return {
      spec,
      resolved: resolvedOf({ ...kept, document: { spec }, version, earlier }, createdAt),
    };
  }
  const spec = object.spec as TemplateSpec;
  return {
    spec,
    resolved: resolvedOf(
      {
        ...(isGlobalHere(kept) ? kept : ownTemplate(kept)),
        document: { spec },
        version: String(Number(version) + 1),
        earlier: versions,
      },
      createdAt,
    ),
  };
};

const isEditedCopy = ({ spec }: ResourceObject, resolved: ResolvedTemplate | undefined): boolean =>
  resolved?.versions?.[0] !== undefined &&
  isCopy(resolved) &&
  resolved.specHash !== contentHash(spec ?? null);

const LONGEST_MESSAGE = 1_024;

const documentOf = (
  { metadata: { name }, spec }: ResourceObject,
  check: (definition: InstanceDefinition) => void,
): SandboxTemplateDocument | Fault => {
  const parsed = SandboxTemplateSchema.safeParse({
    apiVersion: API_VERSION,
    kind: 'SandboxTemplate',
    metadata: { name },
    spec,
  });
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    return { reason: 'Invalid', message: faults.join('; ').slice(0, LONGEST_MESSAGE) };
  }
  try {
    check(renderDefinition(parsed.data.spec));
  } catch (error) {
    if (error instanceof DefinitionRefused)
      return { reason: 'DefinitionRefused', message: error.message.slice(0, LONGEST_MESSAGE) };
    throw error;
  }
  return parsed.data;
};

interface Told extends Pick<TemplateRecord, 'version' | 'earlier'> {
  readonly document: { readonly spec: TemplateSpec };
  readonly sourceHash?: string;
  readonly globalId?: string;
  readonly managedBy?: string;
}

const resolvedOf = (
  { document: { spec }, version, sourceHash, globalId, managedBy, earlier = [] }: Told,
  createdAt: string,
): ResolvedTemplate => ({
  format: FORMAT,
  version,
  createdAt,
  specHash: contentHash(spec),
  ...(sourceHash === undefined ? {} : { sourceHash }),
  ...(globalId === undefined ? {} : { globalId }),
  ...(managedBy === undefined ? {} : { managedBy }),
  versions: [versionOf(version, spec), ...keptOf(earlier)],
});
