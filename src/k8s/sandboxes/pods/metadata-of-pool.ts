import { isLabel, isLabelKey } from '../../../model/templates/placement.ts';

/** Before the name of a label or an annotation that is the pool's. */
const OF_POOL = 'pool.sandpool.dev/';

/**
 * Maximum bytes of the pool's annotations on a Pod, names included, since there are thousands of
 * Pods.
 */
const ANNOTATIONS_BYTES = 16 * 1_024;

/**
 * Returns the labels of a pool for its Pods, if valid, under a prefix of their own. They are the
 * owner's data, so they must not match any policy of the cluster.
 */
export const labelsOfPool = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(labels).flatMap(([key, value]) =>
      !key.includes('/') && isLabel(key, value) ? [[`${OF_POOL}${key}`, value]] : [],
    ),
  );

/**
 * Returns the annotations of a pool for its Pods, prefixed like its labels and sorted by name.
 * Leaves out annotations beyond the limit.
 */
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
