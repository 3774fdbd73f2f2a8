import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { machineTime, systemClock, type MachineTime } from '../system-clock.ts';

/**
 * Describes what the file holds: where the daemon's time stood at a moment of the machine's uptime.
 */
interface Seen {
  readonly bootId: string;
  readonly uptimeMs: number;
  readonly at: number;
}

export interface KeptClock {
  readonly clock: Clock;
  /** Milliseconds by which it is ahead of the machine's, which was set since; below 0: behind. */
  readonly aheadMs: () => number;
  /** Notes where the time stands. May be repeated. */
  readonly stop: () => void;
}

const EVERY_MS = 60_000;
/** Milliseconds by which the machine's time has to be off to be reported. */
export const WORTH_MS = 60_000;
/** No machine that runs this has an honest clock before it. */
export const EARLIEST = Date.parse('2025-01-01T00:00:00Z');

/**
 * A clock that goes on over restarts, whatever is done to the machine's: as long as the machine
 * runs, by its uptime, so that no sandbox ends early because somebody set the time while the daemon
 * was away. After a reboot the machine's time counts, but never runs back behind what was seen. A
 * time before EARLIEST was no honest one, and is taken for nothing once the machine knows better.
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
    log.warn(
      { aheadMs, file },
      "the machine's clock was set; the daemon keeps its own time. To use the machine's " +
        'time, stop the daemon and remove this file',
    );
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
      log.error({ error }, 'the time cannot be saved');
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

/** Says the same of the file of a daemon that may run or not. */
export const clockAheadMs = (file: string, machine: MachineTime = machineTime()): number =>
  timeNow(file, machine) - machine.wall;

const timeNow = (file: string, machine: MachineTime): number => {
  const seen = readSeen(file);
  if (seen === undefined || (seen.at < EARLIEST && machine.wall >= EARLIEST)) return machine.wall;
  return seen.bootId === machine.bootId
    ? seen.at + Math.max(0, machine.uptimeMs - seen.uptimeMs)
    : Math.max(machine.wall, seen.at);
};

/** Undefined where there is none, or it is none of ours. */
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
