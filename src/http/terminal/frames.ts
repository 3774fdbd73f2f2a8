import { MAX_SIDE } from './request.ts';
import { PROCESS_SIGNALS } from '../../model/process.ts';

/** Describes what a text frame of `sandpool.terminal.v1` asks for. */
export type ControlFrame =
  | { readonly type: 'resize'; readonly cols: number; readonly rows: number }
  | { readonly type: 'signal'; readonly name: string }
  /** Nothing more comes as input; of processes alone. */
  | { readonly type: 'eof' };

/** Longer text frames are refused unread. Bytes. */
const MAX_CONTROL_BYTES = 4_096;
const SIGNALS: readonly string[] = PROCESS_SIGNALS;

/**
 * The frame, or what is wrong with it in words for the client. Unknown fields are let through
 * unread.
 */
export const readControlFrame = (
  bytes: Buffer,
  of: 'shell' | 'process' = 'shell',
): ControlFrame | { readonly problem: string } => {
  if (bytes.length > MAX_CONTROL_BYTES)
    return { problem: `a text frame holds at most ${MAX_CONTROL_BYTES} bytes of JSON` };
  const fields = parseObject(bytes.toString('utf8'));
  if (!fields)
    return {
      problem: 'a text frame must be a JSON object; bytes for the terminal go in binary frames',
    };
  const { type, cols, rows, name } = fields;
  if (type === 'resize') {
    return isSide(cols) && isSide(rows)
      ? { type, cols, rows }
      : { problem: `resize: cols and rows must be whole numbers from 1 to ${MAX_SIDE}` };
  }
  if (type === 'signal') {
    return typeof name === 'string' && SIGNALS.includes(name)
      ? { type, name }
      : { problem: `signal: name must be one of ${SIGNALS.join(', ')}` };
  }
  if (of === 'shell') return { problem: 'type must be resize or signal' };
  return type === 'eof' ? { type } : { problem: 'type must be resize, signal or eof' };
};

export const exitFrame = (exitCode: number | null, outOfMemory: boolean): string =>
  JSON.stringify({ type: 'exit', exitCode, oomKilled: outOfMemory || undefined });
export const errorFrame = (error: string): string => JSON.stringify({ type: 'error', error });

const isSide = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_SIDE;

const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
};
