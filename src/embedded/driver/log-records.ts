import type { LogLine } from '../../contracts/sandbox-driver.ts';

/**
 * Lines of the container runtimes' format (CRI): `TIME stdout F text`. P instead of F: the next
 * record continues the line.
 */
const HEAD = '2026-01-31T12:00:00.000000000Z stdout F '.length;
const TIME_LENGTH = '2026-01-31T12:00:00.000000000Z'.length;
const KIND_AT = HEAD - 2;
const NEWLINE = 10;

export interface LogRecords {
  readonly lines: readonly LogLine[];
  /** Up to the end of the last whole record. */
  readonly used: number;
}

/** The block begins at `position`. Skips records that a crash has torn. */
export const parseRecords = (bytes: Buffer, position: number): LogRecords => {
  const lines: LogLine[] = [];
  let from = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
    const line = parseRecord(bytes.subarray(from, end), position + end + 1);
    if (line) lines.push(line);
    from = end + 1;
  }
  return { lines, used: from };
};

const parseRecord = (record: Buffer, next: number): LogLine | undefined => {
  const kind = record[KIND_AT];
  if (record.length < HEAD || (kind !== 0x46 && kind !== 0x50)) return undefined;
  return {
    time: record.toString('latin1', 0, TIME_LENGTH),
    text: record.subarray(HEAD),
    partial: kind === 0x50,
    next: String(next),
  };
};

/** The last line may be partial. */
export const wholeLines = (records: readonly LogLine[]): readonly LogLine[] => {
  const lines: LogLine[] = [];
  let parts: LogLine[] = [];
  for (const record of records) {
    parts.push(record);
    if (record.partial) continue;
    lines.push(joined(parts, record));
    parts = [];
  }
  const last = parts.at(-1);
  return last ? [...lines, joined(parts, last)] : lines;
};

const joined = (parts: readonly LogLine[], last: LogLine): LogLine =>
  parts.length === 1
    ? last
    : {
        ...last,
        time: parts[0]?.time ?? last.time,
        text: Buffer.concat(parts.map(({ text }) => text)),
      };
