import { closest, distance } from 'fastest-levenshtein';

/**
 * The known name that was probably meant, among names or what follows a name's last dot; undefined
 * where none is near.
 */
export const suggestionFor = (name: string, known: readonly string[]): string | undefined => {
  if (known.length === 0 || name.length > MAX_LENGTH) return undefined;
  const whole = closest(name, known);
  if (isNear(name, whole)) return whole;
  const last = lastPart(name);
  return (
    known.find((candidate) => lastPart(candidate).toLowerCase() === last.toLowerCase()) ??
    known.find((candidate) => isNear(last, lastPart(candidate)))
  );
};

/** Longer ones are no slips of the hand, and comparing takes the square of it. */
const MAX_LENGTH = 100;

const lastPart = (name: string): string => name.slice(name.lastIndexOf('.') + 1);

const isNear = (name: string, candidate: string): boolean =>
  distance(name.toLowerCase(), candidate.toLowerCase()) <=
  Math.min(3, Math.floor(candidate.length / 3));
