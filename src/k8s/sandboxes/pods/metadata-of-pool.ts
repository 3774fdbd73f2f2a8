import { isLabel, isLabelKey } from '../../../model/templates/placement.ts';

/** Before the name of a label or an annotation that is the pool's. */
const OF_POOL = 'pool.sandpool.dev/';

/** A Pod bears at most this of its pool's annotations, names included: there are thousands. */
const ANNOTATIONS_BYTES = 16 * 1_024;

/**
 * Gives Pods the labels of their pool under a domain of its own, as far as they can be labels: they
 * are its owner's data, by which no policy of the cluster is to be fooled.
 */
export const labelsOfPool = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(labels).flatMap(([key, value]) =>
      !key.includes('/') && isLabel(key, value) ? [[`${OF_POOL}${key}`, value]] : [],
    ),
  );

/**
 * Gives Pods the annotations of their pool like its labels, in the order of their names. One that
 * goes beyond the bound is left out.
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
