import { once } from 'node:events';
import { openTerminal } from '../../src/client/open-terminal.ts';
import { timeUntil } from '../answer-stream.ts';
import { withSandbox, type ClaimedSandbox } from '../claimed-sandbox.ts';
import { inPairs, type Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';

/** So many pairs for each round, since others on the machine disturb a long half of one. */
const PAIRS = 5;
const STARTS = 20;
const TERMINALS = 8;
const ECHO = ['/bin/echo', 'here'];
/** What a terminal runs. */
const SHELL = ['/bin/sh', '-c', 'exec "$(command -v bash || echo sh)" -l'];
const SIZE = { cols: 80, rows: 24 };
const WITHIN_MS = 10_000;

/** Connections are open before the clock runs, as a client's that keeps them. */
export const start: Figure = {
  name: 'processes:start',
  about: 'a start of `echo` to its first byte, against the launcher alone running the same',
  run: async (bench) =>
    await withSandbox(bench, async (sandbox) => {
      const ours = async (): Promise<number> =>
        quantile(await times(STARTS, () => streamed(sandbox, { command: ECHO })), 0.5);
      const theirs = async (): Promise<number> => quantile(await sandbox.joins(ECHO, STARTS), 0.5);
      await ours();
      await theirs();
      return [
        {
          name: 'a process’s start to its first byte / the launcher alone, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.3,
          beyond: 1.1,
          ...(await inPairs({ ...bench, rounds: bench.rounds * PAIRS }, { ours, theirs })),
        },
      ];
    }),
};

export const terminal: Figure = {
  name: 'processes:terminal',
  about: 'a start of a shell on a terminal to its first byte, against the same by exec-token',
  run: async (bench) =>
    await withSandbox(bench, async (sandbox) => {
      const shell = { command: SHELL, tty: true, ...SIZE };
      const ours = async (): Promise<number> =>
        quantile(await times(TERMINALS, () => streamed(sandbox, shell)), 0.5);
      const theirs = async (): Promise<number> =>
        quantile(await times(TERMINALS, () => byToken(sandbox)), 0.5);
      await ours();
      await theirs();
      return [
        {
          name: 'first byte of a streamed shell / of a terminal, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.2,
          beyond: 1,
          ...(await inPairs({ ...bench, rounds: bench.rounds * PAIRS }, { ours, theirs })),
        },
      ];
    }),
};

const times = async (count: number, one: () => Promise<number>): Promise<readonly number[]> => {
  const found: number[] = [];
  for (let at = 0; at < count; at += 1) found.push(await one());
  return found;
};

/** Leaves a process that goes on to the kill of its group. */
const streamed = async (sandbox: ClaimedSandbox, body: object): Promise<number> => {
  const ask = sandbox.ask({
    method: 'POST',
    path: 'processes',
    headers: ['Accept: text/event-stream'],
    body: JSON.stringify(body),
  });
  const tookMs = await timeUntil(ask, 'event: stdout\n');
  if ('tty' in body) await removeAll(sandbox);
  return tookMs;
};

const removeAll = async ({ daemon: { service }, id }: ClaimedSandbox): Promise<void> => {
  const path = `/sandboxes/${id}/processes`;
  const { items } = JSON.parse(await service.call({ method: 'GET', path }, 200)) as {
    readonly items: readonly { readonly processId: string }[];
  };
  for (const { processId } of items)
    await service.call({ method: 'DELETE', path: `${path}/${processId}` }, 200);
};

const byToken = async ({ daemon: { service }, id }: ClaimedSandbox): Promise<number> => {
  const began = performance.now();
  const path = `/sandboxes/${id}/exec-token`;
  const { token } = JSON.parse(await service.call({ method: 'POST', path, body: '{}' }, 200)) as {
    readonly token: string;
  };
  const opened = await openTerminal({
    server: new URL(`http://127.0.0.1:${service.port}`),
    clusterId: 'local',
    sandboxId: id,
    token,
    ...SIZE,
    deadlineMs: WITHIN_MS,
  });
  await once(opened.stream, 'data', { signal: AbortSignal.timeout(WITHIN_MS) });
  const tookMs = performance.now() - began;
  opened.close();
  await opened.ended;
  return tookMs;
};
