import { isDnsLabel } from '../identifiers.ts';

/** Fits into a header and a query, beside what else a request has. */
export const MOST_POSITIONS_TEXT = 8_192;

/** A place in one cluster's list or stream, in the words of that cluster. */
const POSITION = /^[0-9-]{0,48}$/;

export const isPosition = (text: unknown): text is string =>
  typeof text === 'string' && POSITION.test(text);

/**
 * Writes a place in what several clusters tell as one text, opaque to clients. Where all are too
 * long for 8,192 characters it is not whole: those that were set last are kept.
 */
export const positionsText = (
  positions: ReadonlyMap<string, string>,
): { readonly text: string; readonly isWhole: boolean } => {
  const parts: string[] = [];
  let length = 0;
  for (const [clusterId, position] of [...positions].reverse()) {
    const part = `${clusterId}=${position}`;
    length += part.length + 1;
    if (length * BASE64 > MOST_POSITIONS_TEXT) break;
    parts.push(part);
  }
  return {
    text: PREFIX + Buffer.from(parts.reverse().join(' ')).toString('base64url'),
    isWhole: parts.length === positions.size,
  };
};

const PREFIX = 'f';
const WRITTEN = /^f([\w-]*)$/;
/** Characters of a byte, and some for the rest. */
const BASE64 = 1.34;

/** Undefined for what is no such text. */
export const positionsIn = (text: string): Map<string, string> | undefined => {
  const written = WRITTEN.exec(text)?.[1];
  if (written === undefined || text.length > MOST_POSITIONS_TEXT) return undefined;
  const words = Buffer.from(written, 'base64url').toString('latin1');
  const positions = new Map<string, string>();
  for (const word of words === '' ? [] : words.split(' ')) {
    const at = word.indexOf('=');
    const [clusterId, position] = [word.slice(0, Math.max(0, at)), word.slice(at + 1)];
    if (!isDnsLabel(clusterId) || !isPosition(position)) return undefined;
    positions.set(clusterId, position);
  }
  return positions;
};

/** The longest cursor of a cluster that a place holds. */
export const MOST_PLACE_CURSOR = 2_048;

/** Where a page over clusters ended; `cursor` is that cluster's, empty at its beginning. */
export interface Place {
  readonly clusterId: string;
  readonly cursor: string;
}

export const placeText = ({ clusterId, cursor }: Place): string => `${clusterId}.${cursor}`;

/** Undefined for what is no place. */
export const placeIn = (text: string): Place | undefined => {
  const at = text.indexOf('.');
  const [clusterId, cursor] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
  return isDnsLabel(clusterId) && cursor.length <= MOST_PLACE_CURSOR && /^[\w-]*$/.test(cursor)
    ? { clusterId, cursor }
    : undefined;
};
