import type {
  SandboxTemplateDocument,
  TemplateRecord,
  TemplateSpec,
  TemplateVersion,
} from './template.ts';

/** Kept versions, including the current one. */
export const MOST_VERSIONS = 20;
/** Large templates keep fewer earlier versions. */
const MOST_CHARACTERS = 262_144;

/** Keeps the previous version, and drops the oldest beyond the limit. */
export const nextVersion = (
  record: TemplateRecord,
  document: SandboxTemplateDocument,
): TemplateRecord => ({
  ...record,
  version: String(Number(record.version) + 1),
  document,
  earlier: keptOf([versionOf(record.version, record.document.spec), ...(record.earlier ?? [])]),
});

/** Without its docs; undefined if the version is no longer kept or never existed. */
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

export const keptOf = (earlier: readonly TemplateVersion[]): readonly TemplateVersion[] => {
  let characters = 0;
  const most = earlier.findIndex(
    ({ spec }, index) =>
      (characters += spec.length) > MOST_CHARACTERS || index === MOST_VERSIONS - 1,
  );
  return most < 0 ? earlier : earlier.slice(0, most);
};

const withoutDocs = ({ docs: _docs, ...spec }: TemplateSpec): TemplateSpec => spec;
