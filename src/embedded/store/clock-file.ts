import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { machineTime, systemClock, type MachineTime } from '../system-clock.ts';

/** Daemon's time at an uptime of the machine. */
interface Seen {
  readonly bootId: string;
  readonly uptimeMs: number;
  readonly at: number;
}

export interface KeptClock {
  readonly clock: Clock;
  /** Differs from 0 after somebody sets the machine's time. */
  readonly aheadMs: () => number;
  /** May be repeated. */
  readonly stop: () => void;
}

const EVERY_MS = 60_000;
export const WORTH_MS = 60_000;
/** No honest clock shows an earlier time. */
export const EARLIEST = Date.parse('2025-01-01T00:00:00Z');

/**
 * Continues over restarts by the uptime, so no sandbox ends early because somebody set the time
 * while the daemon was stopped.
 *
 * After a reboot the machine's time counts, but never backwards. A saved time before EARLIEST is
 * ignored once the machine's is later.
 */
export const keptClock = (
  file: string,
  log: Log,
  machine: () => MachineTime = machineTime,
): KeptClock => {
  const found = machine();
  const startAt = timeNow(file, found);
  const aheadMs = Math.round(startAt - found.wall);
  if (Math.abs(aheadMs) > WORTH_MS) {
    log.warn({ aheadMs, file }, 'machine-clock-set');
  }
  const clock = systemClock(startAt);
  let cancel = (): void => {};
  const note = (): void => {
    try {
      const { bootId, uptimeMs } = machine();
      writeFileSync(
        `${file}.new`,
        JSON.stringify({ bootId, uptimeMs, at: clock.now() } satisfies Seen),
        { mode: 0o600 },
      );
      renameSync(`${file}.new`, file);
    } catch (error) {
      log.error({ error }, 'time-not-saved');
    }
  };
  const again = (): void => {
    note();
    cancel = clock.at(clock.now() + EVERY_MS, again);
  };
  again();
  return {
    clock,
    aheadMs: () => clock.now() - machine().wall,
    stop: () => {
      cancel();
      note();
    },
  };
};

/** For the file of a daemon that may be stopped. */
export const clockAheadMs = (file: string, machine: MachineTime = machineTime()): number =>
  timeNow(file, machine) - machine.wall;

const timeNow = (file: string, machine: MachineTime): number => {
  const seen = readSeen(file);
  if (seen === undefined || (seen.at < EARLIEST && machine.wall >= EARLIEST)) return machine.wall;
  return seen.bootId === machine.bootId
    ? seen.at + Math.max(0, machine.uptimeMs - seen.uptimeMs)
    : Math.max(machine.wall, seen.at);
};

/** Undefined if missing or not ours. */
const readSeen = (file: string): Seen | undefined => {
  try {
    const { bootId, uptimeMs, at } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Seen>;
    return typeof bootId === 'string' && isTime(uptimeMs) && isTime(at)
      ? { bootId, uptimeMs, at }
      : undefined;
  } catch {
    return undefined;
  }
};

const isTime = (value: unknown): value is number =>
  typeof value === 'number' && value >= 0 && value < Number.MAX_SAFE_INTEGER;
