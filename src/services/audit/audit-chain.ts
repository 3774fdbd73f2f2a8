import { createHash } from 'node:crypto';
import type { AuditLine } from '../../contracts/audit.ts';

/**
 * The chain: each line is JSON that ends with the hash of the line before it and with its own,
 * `…,"prev":"<hex>","hash":"<hex>"}`. Its own is the SHA-256 of the line without `,"hash":"<hex>"`,
 * so that whoever changes a line must change all that follow it.
 */
export interface ChainEnd {
  readonly seq: number;
  readonly hash: string;
}

export interface ChainedLine extends ChainEnd {
  readonly prev: string;
  /** Whether the hash is that of the line. */
  readonly whole: boolean;
  readonly kind: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** The end that the first line of a chain follows. */
export const CHAIN_START: ChainEnd = { seq: 0, hash: '0'.repeat(64) };

/** The next line of the chain, and where the chain ends with it. */
export const chainLine = (
  end: ChainEnd,
  fields: Readonly<Record<string, unknown>>,
): { readonly line: AuditLine; readonly end: ChainEnd } => {
  const seq = end.seq + 1;
  const hashed = JSON.stringify({ seq, ...fields, prev: end.hash });
  const hash = sha256(hashed);
  return { line: `${hashed.slice(0, -1)},"hash":"${hash}"}`, end: { seq, hash } };
};

/** Undefined for what is no line of a chain. */
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
