import { createHash } from 'node:crypto';
import type { AuditLine } from '../../contracts/audit.ts';

/**
 * Each line ends with the previous line's hash and its own, `…,"prev":"<hex>","hash":"<hex>"}`: the
 * SHA-256 of the line without `,"hash":"<hex>"`. So a changed line requires changes of all later
 * lines.
 */
export interface ChainEnd {
  readonly seq: number;
  readonly hash: string;
}

export interface ChainedLine extends ChainEnd {
  readonly prev: string;
  readonly whole: boolean;
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export const CHAIN_START: ChainEnd = { seq: 0, hash: '0'.repeat(64) };

export const chainLine = (
  end: ChainEnd,
  fields: Readonly<Record<string, unknown>>,
): { readonly line: AuditLine; readonly end: ChainEnd } => {
  const seq = end.seq + 1;
  const hashed = JSON.stringify({ seq, ...fields, prev: end.hash });
  const hash = sha256(hashed);
  return { line: `${hashed.slice(0, -1)},"hash":"${hash}"}`, end: { seq, hash } };
};

export const readChainLine = (line: AuditLine): ChainedLine | undefined => {
  const match = ENDING.exec(line);
  const hash = match?.[1];
  if (!match || hash === undefined) return undefined;
  const hashed = `${line.slice(0, match.index)}}`;
  const fields = parsed(hashed);
  const { seq, prev, kind } = fields ?? {};
  if (
    !fields ||
    typeof seq !== 'number' ||
    !Number.isSafeInteger(seq) ||
    seq < 1 ||
    typeof prev !== 'string' ||
    typeof kind !== 'string'
  )
    return undefined;
  return { seq, prev, hash, kind, fields, whole: sha256(hashed) === hash };
};

const ENDING = /,"hash":"([0-9a-f]{64})"\}$/;

const parsed = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
};

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
