import { isSameData } from '../../lib/plain-data.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Records } from '../../contracts/record-store.ts';
import { DefinitionRefused } from '../../contracts/sandbox-driver.ts';
import type { TemplateFile, TemplateSource } from '../../contracts/template-source.ts';
import { contentHash } from '../../lib/content-hash.ts';
import { fieldPath } from '../../lib/field-path.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import {
  type InstanceDefinition,
  type SandboxTemplateDocument,
  SandboxTemplateSchema,
  type TemplateRecord,
} from '../../model/templates/template.ts';
import { isCopy, isGlobalHere, ownTemplate } from '../../model/templates/global-template.ts';
import { nextVersion } from '../../model/templates/template-versions.ts';

/** `faults` lists all as `FILE: FIELD: PROBLEM`; the message has a line for each. */
export class TemplateFaults extends Error {
  override readonly name = 'TemplateFaults';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`errors in the templates:\n${faults.join('\n')}`);
    this.faults = faults;
  }
}

export interface LoadTemplatesDeps {
  readonly source: TemplateSource;
  readonly templates: Records<TemplateRecord>;
  readonly clock: Clock;
  readonly log: Log;
  /** Throws DefinitionRefused if the driver can't run the definition. */
  readonly check: (definition: InstanceDefinition) => void;
}

/**
 * A template whose file changed since the last import gets the next version. Later changes here
 * stay, and so do templates that the source lacks. Throws TemplateFaults if any document is
 * invalid, before any write.
 */
export const loadTemplates = async (
  deps: LoadTemplatesDeps,
): Promise<readonly TemplateRecord[]> => {
  const documents = readDocuments(await deps.source.read(), deps.check);
  const records = new Map((await deps.templates.list()).map((record) => [record.name, record]));
  for (const document of documents) {
    const { name } = document.metadata;
    const known = records.get(name);
    const sourceHash = contentHash(document);
    if (known && isCopy(known)) {
      deps.log.warn({ template: name }, 'template-file-ignored');
      continue;
    }
    if (!known)
      records.set(
        name,
        await deps.templates.create({
          name,
          version: '1',
          createdAt: deps.clock.now(),
          document,
          sourceHash,
        }),
      );
    else if (known.sourceHash !== sourceHash)
      records.set(
        name,
        await deps.templates.update({
          ...takenOver(isGlobalHere(known) ? known : ownTemplate(known), document, deps.log),
          sourceHash,
        }),
      );
  }
  const named = new Set(documents.map(({ metadata }) => metadata.name));
  for (const { sourceHash, ...known } of [...records.values()]) {
    if (sourceHash !== undefined && !named.has(known.name))
      records.set(known.name, await deps.templates.update(known));
  }
  return [...records.values()];
};

const takenOver = (
  known: TemplateRecord,
  document: SandboxTemplateDocument,
  log: Log,
): TemplateRecord => {
  if (isSameData(known.document, document)) return known;
  if (known.sourceHash !== undefined && known.sourceHash !== contentHash(known.document)) {
    log.warn({ template: known.name, version: known.version }, 'template-file-changed');
  }
  return nextVersion(known, document);
};

const readDocuments = (
  files: readonly TemplateFile[],
  check: LoadTemplatesDeps['check'],
): readonly SandboxTemplateDocument[] => {
  const faults: string[] = [];
  const found = new Map<
    string,
    { readonly file: string; readonly document: SandboxTemplateDocument }
  >();
  for (const { file, text } of files) {
    const read = readDocument(text, check);
    if (Array.isArray(read)) {
      faults.push(...read.map((fault) => `${file}: ${fault}`));
      continue;
    }
    const { name } = read.document.metadata;
    const first = found.get(name);
    if (first) faults.push(`${file}: metadata.name: ${name} is also in ${first.file}`);
    else found.set(name, { file, document: read.document });
  }
  if (faults.length > 0) throw new TemplateFaults(faults);
  return [...found.values()].map(({ document }) => document);
};

const readDocument = (
  text: string,
  check: LoadTemplatesDeps['check'],
): { readonly document: SandboxTemplateDocument } | string[] => {
  let tree: unknown;
  try {
    tree = JSON.parse(text);
  } catch (error) {
    return [`is not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  const parsed = SandboxTemplateSchema.safeParse(tree);
  if (!parsed.success)
    return parsed.error.issues.map(({ path, message }) =>
      path.length === 0 ? message : `${fieldPath(path)}: ${message}`,
    );
  try {
    check(renderDefinition(parsed.data.spec));
  } catch (error) {
    if (error instanceof DefinitionRefused) return [error.message];
    throw error;
  }
  return { document: parsed.data };
};
