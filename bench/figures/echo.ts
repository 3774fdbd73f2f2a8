import { once } from 'node:events';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { pause } from '../process-facts.ts';
import { quantile } from '../statistics.ts';
import type { TerminalConnection } from '../../src/client/terminal-connection.ts';
import { openTerminal } from '../../src/client/open-terminal.ts';

/** Each goes on until its sandbox is deleted. */
const FLOODS: Readonly<Record<string, string>> = {
  processes:
    'test -x /usr/bin/perl && exec perl -e "while (1) { fork }"; while :; do sh -c "b() { b | b & b; }; b"; done',
  memory: 'while :; do head -c 4G /dev/zero | tail; done',
  disk: 'while :; do cat /dev/zero > /tmp/flood; cat /dev/zero > "$HOME/flood"; cat /dev/zero > /dev/shm/flood; rm -f /tmp/flood "$HOME/flood" /dev/shm/flood; done',
};
const ECHOES = 150;
const ONSET_MS = 300;

export const echo: Figure = {
  name: 'echo',
  about:
    "another sandbox's echo, as a command and in its terminal, while one floods processes, memory or disk",
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      const { service } = daemon;
      await service.createFullPool('bench', 2);
      const quiet = await service.claim('bench');
      const token = (
        JSON.parse(
          await service.call(
            { method: 'POST', path: `/sandboxes/${quiet}/exec-token`, body: '{}' },
            200,
          ),
        ) as { token: string }
      ).token;
      const terminal = await openTerminal({
        server: new URL(`http://127.0.0.1:${service.port}`),
        clusterId: 'local',
        sandboxId: quiet,
        token,
        cols: 80,
        rows: 24,
        deadlineMs: 5_000,
      });
      await prepare(terminal);
      const rows: Measure[] = [];
      for (const [what, script] of Object.entries(FLOODS)) {
        const found: { readonly exec: number; readonly terminal: number }[] = [];
        for (let round = 0; round < bench.rounds; round += 1) {
          const noisy = await service.claim('bench');
          let over = false;
          const flooding = bench.load
            .closed(service.port, service.commands(noisy, ['/bin/sh', '-c', script], 1), 1)
            .finally(() => {
              over = true;
            });
          await pause(ONSET_MS);
          found.push(await echoes(daemon, quiet, terminal));
          if (over)
            throw new Error(
              `the flood of ${what} ended by itself: ${(await flooding).bodies[0]?.slice(0, 300)}`,
            );
          await service.call({ method: 'DELETE', path: `/sandboxes/${noisy}` }, 200);
          await flooding;
          await service.untilIdle('bench', 1);
        }
        rows.push(
          {
            name: `echo p99 by exec, a neighbour floods ${what}`,
            unit: 'ms',
            better: 'less',
            reach: 200,
            beyond: 50,
            ours: found.map((each) => each.exec),
          },
          {
            name: `echo p99 in a terminal, a neighbour floods ${what}`,
            unit: 'ms',
            better: 'less',
            reach: 200,
            beyond: 50,
            ours: found.map((each) => each.terminal),
          },
        );
      }
      terminal.close();
      return rows;
    } finally {
      await daemon.dispose();
    }
  },
};

const echoes = async (
  daemon: Daemon,
  id: string,
  terminal: TerminalConnection,
): Promise<{ readonly exec: number; readonly terminal: number }> => {
  const [byExec, inTerminal]: [number[], number[]] = [[], []];
  for (let at = 0; at < ECHOES; at += 1) {
    const began = performance.now();
    const body = await daemon.service.call(
      {
        method: 'POST',
        path: `/sandboxes/${id}/exec`,
        body: JSON.stringify({ command: ['/bin/echo', `echo ${at}`] }),
      },
      200,
    );
    byExec.push(performance.now() - began);
    if (!body.includes(`echo ${at}\\n`)) throw new Error(`the echo did not come back: ${body}`);
    inTerminal.push(await roundTrip(terminal, `line ${at}`));
  }
  return { exec: quantile(byExec, 0.99), terminal: quantile(inTerminal, 0.99) };
};

/** From now on a process in the sandbox, not the terminal itself, sends back each line. */
export const prepare = async (terminal: TerminalConnection): Promise<void> => {
  const heard = hears(terminal, 'prepared-42');
  terminal.stream.write('stty -echo; echo prepared-$((6 * 7)); exec cat\n');
  await heard;
};

export const roundTrip = async (terminal: TerminalConnection, line: string): Promise<number> => {
  const began = performance.now();
  const heard = hears(terminal, line);
  terminal.stream.write(`${line}\n`);
  await heard;
  return performance.now() - began;
};

const hears = async ({ stream }: TerminalConnection, line: string): Promise<void> => {
  const signal = AbortSignal.timeout(10_000);
  for (let text = ''; !text.includes(`${line}\r\n`);) {
    const [bytes]: unknown[] = await once(stream, 'data', { signal });
    text += String(bytes);
  }
};
