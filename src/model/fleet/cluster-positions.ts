import { isDnsLabel } from '../identifiers.ts';

/** Fits into a header and a query, beside the other parts of a request. */
export const MOST_POSITIONS_TEXT = 8_192;

const POSITION = /^[0-9-]{0,48}$/;

export const isPosition = (text: unknown): text is string =>
  typeof text === 'string' && POSITION.test(text);

/** Opaque to clients. If the text would be too long, keeps only the latest entries. */
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
const BASE64 = 1.34;

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

export const MOST_PLACE_CURSOR = 2_048;

/** End of a page over clusters; `cursor` is that cluster's, empty at its beginning. */
export interface Place {
  readonly clusterId: string;
  readonly cursor: string;
}

export const placeText = ({ clusterId, cursor }: Place): string => `${clusterId}.${cursor}`;

export const placeIn = (text: string): Place | undefined => {
  const at = text.indexOf('.');
  const [clusterId, cursor] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)];
  return isDnsLabel(clusterId) && cursor.length <= MOST_PLACE_CURSOR && /^[\w-]*$/.test(cursor)
    ? { clusterId, cursor }
    : undefined;
};
