import { once } from 'node:events';
import { openTerminal } from '../../src/client/open-terminal.ts';
import type { ClaimedSandbox } from '../claimed-sandbox.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { Measure } from '../measure.ts';
import { quantile } from '../statistics.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import { byRest, withServedSandbox, type ServedSandbox } from './served-sandbox.ts';

const TERMINALS = 8;
const ECHOES = 100;
const SIZE = { cols: 80, rows: 24 };
const WITHIN_MS = 10_000;
/** Prints nothing but what it is sent, whoever made the terminal. */
const QUIET = 'stty raw -echo; exec cat\n';

/** One terminal, whoever made it. */
interface Terminal {
  readonly send: (text: string) => Promise<void>;
  readonly close: () => Promise<void>;
  /** Resolves once the text has come since it was called last. */
  readonly hear: (text?: string) => Promise<void>;
}

export const terminals: Figure = {
  name: 'e2b:terminal',
  about: "first byte and echo of the SDK's pty, against a terminal of the REST API",
  run: async (bench) =>
    await withServedSandbox(bench, async (served) => {
      const often = { ...bench, rounds: bench.rounds * 3 };
      const first = {
        ours: () => firstByte(() => byPty(served)),
        theirs: () => firstByte(() => byToken(served.rest)),
      };
      await first.ours();
      await first.theirs();
      const rows: Measure[] = [
        {
          name: 'first byte of pty.create / of a terminal, p50',
          unit: 'ms',
          better: 'less',
          reach: 1.3,
          beyond: 1.1,
          ...(await inPairs(often, first)),
        },
      ];
      const [pty, terminal, process] = [
        await byPty(served),
        await byToken(served.rest),
        await byEvents(served.rest),
      ];
      for (const each of [pty, terminal, process]) {
        await each.hear();
        await each.send(QUIET);
        await each.send('begun');
        await each.hear('begun');
      }
      for (const [what, other] of [
        ['of a terminal', terminal],
        ['of a process with a terminal, whose keys are requests too', process],
      ] as const) {
        const echo = { ours: () => echoed(pty), theirs: () => echoed(other) };
        await echo.ours();
        await echo.theirs();
        rows.push({
          name: `echo of a pty / ${what}, p50`,
          unit: 'ms',
          better: 'less',
          reach: 1.2,
          beyond: 1.05,
          ...(await inPairs(often, echo)),
        });
      }
      for (const each of [pty, terminal, process]) await each.close();
      return rows;
    }),
};

const firstByte = async (open: () => Promise<Terminal>): Promise<number> => {
  const found: number[] = [];
  for (let at = 0; at < TERMINALS; at += 1) {
    const began = performance.now();
    const terminal = await open();
    await terminal.hear();
    found.push(performance.now() - began);
    await terminal.close();
  }
  return quantile(found, 0.5);
};

const echoed = async ({ send, hear }: Terminal): Promise<number> => {
  const found: number[] = [];
  for (let at = 0; at < ECHOES; at += 1) {
    const text = `<${at}>`;
    const began = performance.now();
    await Promise.all([send(text), hear(text)]);
    found.push(performance.now() - began);
  }
  return quantile(found, 0.5);
};

/** Hears what comes, and says when it has heard what is waited for. */
class Ear {
  #heard = '';
  #waiting = (): void => {};

  take(bytes: Uint8Array): void {
    this.#heard += Buffer.from(bytes).toString('latin1');
    this.#waiting();
  }

  async until(text: string): Promise<void> {
    const deadline = AbortSignal.timeout(WITHIN_MS);
    while (this.#heard === '' || !this.#heard.includes(text))
      await new Promise<void>((resolve, reject) => {
        this.#waiting = resolve;
        deadline.onabort = () => reject(new Error(`nothing came: ${this.#heard.slice(-200)}`));
      });
    this.#heard = '';
  }
}

const byPty = async ({ sdk }: ServedSandbox): Promise<Terminal> => {
  const ear = new Ear();
  const { pid, kill } = await sdk.pty
    .create({ ...SIZE, timeoutMs: 0, onData: (bytes) => ear.take(bytes) })
    .then((handle) => ({ pid: handle.pid, kill: () => handle.kill() }));
  return {
    send: (text) => sdk.pty.sendInput(pid, Buffer.from(text)),
    hear: (text = '') => ear.until(text),
    close: async () => void (await kill()),
  };
};

const byToken = async ({ daemon: { service }, id }: ClaimedSandbox): Promise<Terminal> => {
  const path = `/sandboxes/${id}/exec-token`;
  const { token } = JSON.parse(await service.call({ method: 'POST', path, body: '{}' }, 200)) as {
    readonly token: string;
  };
  const ear = new Ear();
  const opened = await openTerminal({
    server: new URL(`http://127.0.0.1:${service.port}`),
    clusterId: 'local',
    sandboxId: id,
    token,
    ...SIZE,
    deadlineMs: WITHIN_MS,
  });
  opened.stream.on('data', (bytes: Buffer) => ear.take(bytes));
  return {
    send: async (text) => {
      if (!opened.stream.write(text)) await once(opened.stream, 'drain');
    },
    hear: (text = '') => ear.until(text),
    close: async () => {
      opened.close();
      await opened.ended;
    },
  };
};

/** A process with a terminal of the REST API: its keys are requests, as those of the SDK are. */
const byEvents = async (rest: ClaimedSandbox): Promise<Terminal> => {
  const ear = new Ear();
  const headers = { 'Content-Type': 'application/json' };
  const leaving = new AbortController();
  const stream = await byRest(rest, 'processes?encoding=base64', {
    method: 'POST',
    headers: { ...headers, Accept: 'text/event-stream' },
    body: JSON.stringify({ command: ['/bin/bash', '-l'], tty: true, stdin: true, ...SIZE }),
    signal: leaving.signal,
  });
  if (!stream.body) throw new Error('the process has no stream');
  const begun = new Deferred<string>();
  void readEvents(stream.body, (event, data) => {
    const { processId } = (data['process'] ?? {}) as { readonly processId?: string };
    if (event === 'start') begun.resolve(processId ?? '');
    else if (typeof data['data'] === 'string') ear.take(Buffer.from(data['data'], 'base64'));
  }).catch(() => {});
  const processId = await begun.promise;
  return {
    send: async (text) => {
      const answer = await byRest(rest, `processes/${processId}/stdin`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ data: text }),
      });
      await answer.arrayBuffer();
    },
    hear: (text = '') => ear.until(text),
    close: async () => {
      await byRest(rest, `processes/${processId}`, { method: 'DELETE' });
      leaving.abort();
    },
  };
};

const readEvents = async (
  body: ReadableStream<Uint8Array>,
  take: (event: string, data: Readonly<Record<string, unknown>>) => void,
): Promise<void> => {
  let left = '';
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const events = (left + piece).split('\n\n');
    left = events.pop() ?? '';
    for (const each of events) {
      const event = /^event: (.*)$/m.exec(each)?.[1] ?? '';
      const data = /^data: (.*)$/m.exec(each)?.[1];
      if (data !== undefined) take(event, JSON.parse(data) as Readonly<Record<string, unknown>>);
    }
  }
};
