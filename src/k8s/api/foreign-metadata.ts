/** Metadata that others added to our objects; our writes preserve it. */
export interface ForeignMetadata {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly unknown[];
}

const OURS = 'sandpool.dev/';

export const foreignMetadataOf = ({
  labels,
  annotations,
  finalizers = [],
  ownerReferences = [],
}: ForeignMetadata): ForeignMetadata | undefined => {
  const [others, notes] = [notOurs(labels), notOurs(annotations)];
  if (!others && !notes && finalizers.length === 0 && ownerReferences.length === 0)
    return undefined;
  return { labels: others, annotations: notes, finalizers, ownerReferences };
};

const notOurs = (
  words: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> | undefined => {
  if (!words) return undefined;
  for (const name in words)
    if (!name.startsWith(OURS))
      return Object.fromEntries(Object.entries(words).filter(([key]) => !key.startsWith(OURS)));
  return undefined;
};
