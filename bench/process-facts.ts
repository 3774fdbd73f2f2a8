import { readdirSync, readFileSync } from 'node:fs';

/** Processes that are gone count as nothing. */

/** All its living threads together. */
export const cpuMsOf = (pid: number): number => {
  const threads = namesIn(`/proc/${pid}/task`);
  return threads.reduce(
    (sum, thread) =>
      sum + Number(textOf(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1e6,
    0,
  );
};

/** 2^20 bytes. */
export const residentMbOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) / 1_024;

export const childrenOf = (pid: number): readonly number[] =>
  namesIn(`/proc/${pid}/task`)
    .flatMap((thread) => textOf(`/proc/${pid}/task/${thread}/children`).trim().split(' '))
    .filter((text) => text !== '')
    .map(Number);

export const commandOf = (pid: number): string =>
  textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();

/** Less than this share of a processor for 100 ms; after 10 s in any case. */
export const untilCalm = async (pids: readonly number[], share = 0.02): Promise<void> => {
  const used = (): number => pids.reduce((sum, pid) => sum + cpuMsOf(pid), 0);
  const deadline = performance.now() + 10_000;
  for (let before = used(); performance.now() < deadline;) {
    await pause(100);
    const now = used();
    if (now - before < share * 100) return;
    before = now;
  }
};

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
};

const namesIn = (path: string): readonly string[] => {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
};
