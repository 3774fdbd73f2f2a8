import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { AuditLine } from '../../contracts/audit.ts';
import { CHAIN_START, type ChainEnd, type ChainedLine, readChainLine } from './audit-chain.ts';

/** Names sort in order. */
export const auditFileName = (firstSeq: number): string =>
  `audit-${String(firstSeq).padStart(16, '0')}.jsonl`;
export const firstSeqOf = (name: string): number | undefined => {
  const digits = FILE_NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

/** It reveals lines that were cut off the end, unless this file was changed too. */
export const HEAD_FILE = 'head';
export const headText = ({ seq, hash }: ChainEnd): string =>
  `${String(seq).padStart(16, '0')} ${hash}\n`;

/** In order. */
export const auditFiles = (folder: string): readonly string[] =>
  readdirSync(folder)
    .filter((name) => FILE_NAME.test(name))
    .sort()
    .map((name) => join(folder, name));

export const readHead = (folder: string): ChainEnd | undefined => {
  try {
    const match = /^(\d{16}) ([0-9a-f]{64})\n$/.exec(
      readFileSync(join(folder, HEAD_FILE), 'latin1'),
    );
    return match?.[2] === undefined ? undefined : { seq: Number(match[1]), hash: match[2] };
  } catch {
    return undefined;
  }
};

export interface AuditTail {
  /** CHAIN_START for an empty audit. */
  readonly end: ChainEnd;
  readonly endKind: string | undefined;
  /** To continue. Undefined without a file, or if the last one does not end with `end`. */
  readonly file: { readonly path: string; readonly bytes: number } | undefined;
  readonly lastFileSeq: number;
  /** Oldest first. */
  readonly lines: readonly AuditLine[];
}

export const readAuditTail = (folder: string): AuditTail => {
  const files = auditFiles(folder);
  let lines: AuditLine[] = [];
  let left = TAIL_BYTES;
  let last: { readonly path: string; readonly bytes: number; readonly ended: boolean } | undefined;
  for (const path of files.toReversed()) {
    if (left <= 0) break;
    const { text, read, bytes } = readEnd(path, left);
    last ??= { path, bytes, ended: text.endsWith('\n') };
    const found = text.split('\n');
    found.pop(); // drop an incomplete line
    if (read < bytes) found.shift();
    lines = [...found, ...lines];
    left -= read;
  }
  const end = lastOf(lines);
  const goesOn =
    last?.ended === true && end !== undefined && lines.at(-1)?.includes(end.hash) === true;
  return {
    end: end ?? CHAIN_START,
    endKind: end?.kind,
    file: last && goesOn ? { path: last.path, bytes: last.bytes } : undefined,
    lastFileSeq: firstSeqOf(basename(files.at(-1) ?? '')) ?? 0,
    lines,
  };
};

const FILE_NAME = /^audit-(\d{16})\.jsonl$/;
const TAIL_BYTES = 2_097_152;

const lastOf = (lines: readonly AuditLine[]): ChainedLine | undefined => {
  for (const line of lines.toReversed()) {
    const read = readChainLine(line);
    if (read) return read;
  }
  return undefined;
};

const readEnd = (
  path: string,
  most: number,
): { readonly text: string; readonly read: number; readonly bytes: number } => {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const buffer = Buffer.alloc(Math.min(size, most));
    const read = readSync(file, buffer, 0, buffer.length, size - buffer.length);
    return { text: buffer.toString('utf8', 0, read), read, bytes: size };
  } finally {
    closeSync(file);
  }
};
