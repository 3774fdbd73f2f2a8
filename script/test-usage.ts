import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** In seconds. */
export interface Usage {
  readonly clock: number;
  /** With ended children. */
  readonly processor: number;
  /** Everything else on the machine, and its hypervisor's other guests. */
  readonly others: number;
}

const TICKS_A_SECOND = 100;

/** The function returns what was used since. */
export const measureUsage = (): (() => Usage) => {
  const [began, own, all] = [performance.now(), processorSeconds(), busySeconds()];
  return () => {
    const processor = processorSeconds() - own;
    return {
      clock: (performance.now() - began) / 1_000,
      processor,
      others: Math.max(0, busySeconds() - all - processor),
    };
  };
};

/**
 * Undefined if not. The budget holds for processor time on two cores, and for the clock less what
 * others took, so that a busy machine does not fail a run.
 */
export const beyondBudget = (usage: Usage, minutes: number): string | undefined => {
  const cores = availableParallelism();
  const undisturbed = usage.clock - usage.others / cores;
  const spent = usage.processor / 2;
  const over = Math.max(undisturbed, spent) / 60;
  return over > minutes
    ? `${over.toFixed(1)} minutes are more than the ${minutes} of script/test-budget.json`
    : undefined;
};

export const shownUsage = ({ clock, processor, others }: Usage): string =>
  `${minutesOf(clock)} min by the clock, ${minutesOf(processor)} min of processor time; ` +
  `others took ${minutesOf(others)} min of it`;

const minutesOf = (seconds: number): string => (seconds / 60).toFixed(1);

/** Fields 14 to 17 of proc_pid_stat(5), with waited-for children. */
export const processorSeconds = (): number => {
  const after = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return sum(after.slice(11, 15)) / TICKS_A_SECOND;
};

/** From proc_stat(5), without idle, iowait, and guests, which user contains. */
const busySeconds = (): number => {
  const [, ...fields] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] ?? '').split(/ +/);
  return sum(fields.filter((_, at) => at !== 3 && at !== 4 && at < 8)) / TICKS_A_SECOND;
};

const sum = (fields: readonly string[]): number =>
  fields.reduce((all, field) => all + Number(field), 0);
