import type { Case } from '../case.ts';

/** Exceeds a replica's clock error right after its start. */
const TOLERANCE_MS = 60_000;
const UUID_V7 = /^([0-9a-f]{8})-([0-9a-f]{4})-7/;

/** Even if a machine's clock is wrong. */
export const trueTime = ({ instances, time, epoch }: Case): readonly string[] =>
  [...instances.values()].flatMap(({ id, spans, claims }) => {
    const isOff = (told: number, revision: number): boolean =>
      told < epoch + time.earliest(revision) - TOLERANCE_MS ||
      told > epoch + time.latest(revision) + TOLERANCE_MS;
    const found: string[] = [];
    const [, high = '', low = ''] = UUID_V7.exec(id) ?? [];
    const born = Number.parseInt(high + low, 16);
    const revision = spans[0]?.from ?? 0;
    if (isOff(born, revision))
      found.push(
        `${id} says that it was made at ${new Date(born).toISOString()}; it was at ${new Date(epoch + time.latest(revision)).toISOString()}`,
      );
    for (const claim of claims) {
      if (isOff(Date.parse(claim.claimedAt), claim.revision))
        found.push(
          `${id} says that it was claimed at ${claim.claimedAt}; it was at ${new Date(epoch + time.latest(claim.revision)).toISOString()}`,
        );
    }
    return found;
  });
