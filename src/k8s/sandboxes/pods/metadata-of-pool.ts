import { isLabel, isLabelKey } from '../../../model/templates/placement.ts';

const OF_POOL = 'pool.sandpool.dev/';

/** Names included; there are thousands of Pods. */
const ANNOTATIONS_BYTES = 16 * 1_024;

/**
 * The owner's labels get a prefix of their own, so that they cannot match any policy of the
 * cluster. Leaves out invalid ones.
 */
export const labelsOfPool = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(labels).flatMap(([key, value]) =>
      !key.includes('/') && isLabel(key, value) ? [[`${OF_POOL}${key}`, value]] : [],
    ),
  );

export const annotationsOfPool = (
  annotations: Readonly<Record<string, string>>,
): Record<string, string> => {
  const copied: Record<string, string> = {};
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations).sort(byName)) {
    if (key.includes('/') || !isLabelKey(key) || value.includes('\0')) continue;
    const size = Buffer.byteLength(`${OF_POOL}${key}${value}`);
    if (bytes + size > ANNOTATIONS_BYTES) continue;
    bytes += size;
    copied[`${OF_POOL}${key}`] = value;
  }
  return copied;
};

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]): number =>
  a < b ? -1 : 1;
