import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { Clock } from '../contracts/clock.ts';

/** `uptimeMs` counts from boot, includes sleep, and can't be set. */
export interface MachineTime {
  readonly wall: number;
  readonly uptimeMs: number;
  readonly bootId: string;
}

export const machineTime = (): MachineTime => ({
  wall: Date.now(),
  uptimeMs: uptime() * 1_000,
  bootId: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
});

/** Monotonic, in whole ms. A pending timer does not keep the process alive. */
export const systemClock = (startAt?: number): Clock => {
  const origin = startAt === undefined ? performance.timeOrigin : startAt - performance.now();
  const now = (): number => Math.floor(origin + performance.now());
  const at = (moment: number, due: () => void): (() => void) => {
    let timer: NodeJS.Timeout;
    const arm = (): void => {
      timer = setTimeout(ring, Math.min(Math.max(moment - now(), 0), LONGEST_TIMER_MS)).unref();
    };
    // Timers may fire a little early, and hold at most 24.8 days.
    const ring = (): void => {
      if (now() >= moment) due();
      else arm();
    };
    arm();
    return () => {
      clearTimeout(timer);
    };
  };
  return { now, at };
};

/** A longer Node timer fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
