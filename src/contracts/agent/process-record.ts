import { signalOf } from '../../lib/signal-names.ts';
import type { ProcessOrder } from '../processes.ts';
import type { ProcessFact } from '../../model/process.ts';

/** A holder keeps this JSON and returns it unchanged. `tenant` is the process's owner. */
export const toldOf = (order: ProcessOrder, startedAt: number, tenant?: string): string =>
  JSON.stringify({
    tenant,
    argv: order.argv,
    startedAt,
    tag: order.tag,
    tty: order.tty !== undefined,
    stdin: order.stdin || order.tty !== undefined,
  });

/** Before the id: whether it has ended, its pid, its exit code, ms since its start. */
const FIXED_BYTES = 17;
const RUNNING = 'R'.charCodeAt(0);
const OUT_OF_MEMORY = 'M'.charCodeAt(0);
export const PROCESS_ID = /^\.?[\w-]{1,64}$/;
const TIMED_OUT = 124;
const MOST_CODE = 255;
/** Latest time that a Date can represent. */
const LATEST = 8.64e15;

/** Undefined if malformed: code in the sandbox can forge it. */
export const readProcess = (record: Buffer): ProcessFact | undefined => {
  const end = record.indexOf(0, FIXED_BYTES);
  if (record.length < FIXED_BYTES || end < 0) return undefined;
  const processId = record.toString('latin1', FIXED_BYTES, end);
  const told = readTold(toldIn(record));
  if (!told || !PROCESS_ID.test(processId)) return undefined;
  const { argv, startedAt, tag, tty, stdin } = told;
  const fact = { processId, pid: record.readUInt32BE(1), argv, startedAt, tag, tty, stdin };
  const state = record.readUInt8(0);
  if (state === RUNNING) return { ...fact, status: 'Running' };
  const exitCode = Math.min(record.readUInt32BE(5), MOST_CODE);
  const signal = exitCode === TIMED_OUT ? undefined : signalOf(exitCode);
  const endedAt = startedAt + Number(record.readBigUInt64BE(9));
  return {
    ...fact,
    status: 'Exited',
    exitCode,
    signal,
    outOfMemory: state === OUT_OF_MEMORY || undefined,
    ...(endedAt < LATEST ? { endedAt } : {}),
  };
};

export const tenantIn = (record: Buffer): string | undefined => {
  const { tenant } = JSON.parse(toldIn(record)) as { readonly tenant?: unknown };
  return typeof tenant === 'string' ? tenant : undefined;
};

const toldIn = (record: Buffer): string =>
  record.toString('utf8', record.indexOf(0, FIXED_BYTES) + 1);

interface Told {
  readonly argv: readonly string[];
  readonly startedAt: number;
  readonly tag: string | undefined;
  readonly tty: boolean;
  readonly stdin: boolean;
}

const readTold = (text: string): Told | undefined => {
  let told: Partial<Record<keyof Told, unknown>> | null;
  try {
    told = JSON.parse(text) as Partial<Record<keyof Told, unknown>> | null;
  } catch {
    return undefined;
  }
  const { argv, startedAt, tag, tty, stdin } = told ?? {};
  if (!Array.isArray(argv) || !argv.every((each) => typeof each === 'string')) return undefined;
  if (typeof startedAt !== 'number' || !(startedAt >= 0 && startedAt < LATEST)) return undefined;
  return {
    argv,
    startedAt,
    tag: typeof tag === 'string' ? tag : undefined,
    tty: tty === true,
    stdin: stdin === true,
  };
};
