import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../contracts/clock.ts';
import type { Records } from '../contracts/record-store.ts';
import { DefinitionRefused } from '../contracts/sandbox-driver.ts';
import type { TemplateFile, TemplateSource } from '../contracts/template-source.ts';
import { renderDefinition } from '../model/render-definition.ts';
import { type InstanceDefinition, type SandboxTemplateDocument, SandboxTemplateSchema, type TemplateRecord } from '../model/template.ts';

/** Templates that can't be taken. `faults` holds every one, as `FILE: FIELD: PROBLEM`; the message is a line for each. */
export class TemplateFaults extends Error {
  override readonly name = 'TemplateFaults';
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`templates with faults:\n${faults.join('\n')}`);
    this.faults = faults;
  }
}

export interface LoadTemplatesDeps {
  readonly source: TemplateSource;
  readonly templates: Records<TemplateRecord>;
  readonly clock: Clock;
  /** Throws DefinitionRefused where the driver can't run it. */
  readonly check: (definition: InstanceDefinition) => void;
}

/**
 * Takes over the templates of the source: new ones with version 1, changed ones with the next version, equal ones
 * untouched; those that the source doesn't name stay. Answers every template there is then. Throws TemplateFaults, with
 * nothing written, where any document is at fault.
 */
export const loadTemplates = async (deps: LoadTemplatesDeps): Promise<readonly TemplateRecord[]> => {
  const documents = readDocuments(await deps.source.read(), deps.check);
  const records = new Map((await deps.templates.list()).map((record) => [record.name, record]));
  for (const document of documents) {
    const { name } = document.metadata;
    const known = records.get(name);
    if (!known) records.set(name, await deps.templates.create({ name, version: '1', createdAt: deps.clock.now(), document }));
    else if (!isDeepStrictEqual(known.document, document)) {
      records.set(name, await deps.templates.update({ ...known, version: String(Number(known.version) + 1), document }));
    }
  }
  return [...records.values()];
};

const readDocuments = (files: readonly TemplateFile[], check: LoadTemplatesDeps['check']): readonly SandboxTemplateDocument[] => {
  const faults: string[] = [];
  const found = new Map<string, { readonly file: string; readonly document: SandboxTemplateDocument }>();
  for (const { file, text } of files) {
    const read = readDocument(text, check);
    if (Array.isArray(read)) {
      faults.push(...read.map((fault) => `${file}: ${fault}`));
      continue;
    }
    const { name } = read.document.metadata;
    const first = found.get(name);
    if (first) faults.push(`${file}: metadata.name: ${name} is in ${first.file} already`);
    else found.set(name, { file, document: read.document });
  }
  if (faults.length > 0) throw new TemplateFaults(faults);
  return [...found.values()].map(({ document }) => document);
};

/** The document, or what is wrong with it, field by field. */
const readDocument = (text: string, check: LoadTemplatesDeps['check']): { readonly document: SandboxTemplateDocument } | string[] => {
  let tree: unknown;
  try {
    tree = JSON.parse(text);
  } catch (error) {
    return [`is not JSON: ${error instanceof Error ? error.message : String(error)}`];
  }
  const parsed = SandboxTemplateSchema.safeParse(tree);
  if (!parsed.success) return parsed.error.issues.map(({ path, message }) => (path.length === 0 ? message : `${fieldOf(path)}: ${message}`));
  try {
    check(renderDefinition(parsed.data));
  } catch (error) {
    if (error instanceof DefinitionRefused) return [error.message];
    throw error;
  }
  return { document: parsed.data };
};

/** `spec.containers[0].name` */
const fieldOf = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`), '');
