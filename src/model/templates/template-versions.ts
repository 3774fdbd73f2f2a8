import type {
  SandboxTemplateDocument,
  TemplateRecord,
  TemplateSpec,
  TemplateVersion,
} from './template.ts';

/** Versions of one template that are kept, the current one among them. */
export const MOST_VERSIONS = 20;
/** Characters of the earlier ones together; of large ones fewer are kept. */
const MOST_CHARACTERS = 262_144;

/**
 * The record with another document, as its next version; the one before is kept, the oldest goes.
 */
export const nextVersion = (
  record: TemplateRecord,
  document: SandboxTemplateDocument,
): TemplateRecord => ({
  ...record,
  version: String(Number(record.version) + 1),
  document,
  earlier: keptOf([versionOf(record.version, record.document.spec), ...(record.earlier ?? [])]),
});

/**
 * Finds what the template said in a version, without its docs; undefined where that is not kept any
 * more, or never was.
 */
export const specOfVersion = (
  { version: current, document, earlier = [] }: TemplateRecord,
  version: string,
): TemplateSpec | undefined => {
  if (version === current) return withoutDocs(document.spec);
  const found = earlier.find((one) => one.version === version);
  return found && (JSON.parse(found.spec) as TemplateSpec);
};

export const versionOf = (version: string, spec: TemplateSpec): TemplateVersion => ({
  version,
  spec: JSON.stringify(withoutDocs(spec)),
});

/** Keeps of earlier versions, the newest first, those that may stay beside the current one. */
export const keptOf = (earlier: readonly TemplateVersion[]): readonly TemplateVersion[] => {
  let characters = 0;
  const most = earlier.findIndex(
    ({ spec }, index) =>
      (characters += spec.length) > MOST_CHARACTERS || index === MOST_VERSIONS - 1,
  );
  return most < 0 ? earlier : earlier.slice(0, most);
};

const withoutDocs = ({ docs: _docs, ...spec }: TemplateSpec): TemplateSpec => spec;
