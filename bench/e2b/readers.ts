import type { Socket } from 'node:net';
import { hearing, openConnection } from '../answer-stream.ts';
import { tenantKeyOf } from '../claimed-sandbox.ts';
import { COMPATIBLE_FLAGS, type Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { SILENT_STREAMS, silentStreams } from '../silent-streams.ts';
import { STALLED_READERS, stalledReaders } from '../stalled-readers.ts';
import { compatibleId } from '../../src/e2b/sandbox-id.ts';

/** E2B's SDKs ask for 50: so each stream says it once while it is measured. */
const KEEPALIVE_SECONDS = 15;

export const silent: Figure = {
  name: 'e2b:silent',
  about: `${SILENT_STREAMS} streams of E2B's SDKs that say nothing but that they are alive`,
  run: async (bench) => {
    const tokens = new Tokens();
    return await silentStreams(bench, {
      what: "silent streams of E2B's SDKs",
      flags: COMPATIBLE_FLAGS,
      open: async (daemon, id) =>
        await opened(daemon, await tokens.of(daemon, id), 'Start', {
          process: { cmd: '/bin/sleep', args: ['infinity'] },
          stdin: false,
        }),
    });
  },
};

const YES = { process: { tag: 'yes' } };

export const stalled: Figure = {
  name: 'e2b:stalled',
  about: `${STALLED_READERS} readers of E2B's SDKs that stall under \`yes\`: memory; others' claim p99`,
  run: async (bench) => {
    const tokens = new Tokens();
    return await stalledReaders(bench, {
      what: "stalled readers of E2B's SDKs",
      flags: COMPATIBLE_FLAGS,
      open: async (daemon, id) => {
        const token = await tokens.of(daemon, id);
        const order = { process: { cmd: '/usr/bin/yes' }, tag: 'yes', stdin: false };
        const sockets = [(await opened(daemon, token, 'Start', order)).pause()];
        while (sockets.length < STALLED_READERS)
          sockets.push((await opened(daemon, token, 'Connect', YES)).pause());
        return sockets;
      },
      end: async (daemon, id) => {
        const answer = await fetch(new URL('/process.Process/SendSignal', daemon.compatibleUrl), {
          method: 'POST',
          headers: {
            'X-Access-Token': await tokens.of(daemon, id),
            'Content-Type': 'application/json',
          },
          body: JSON.stringify({ ...YES, signal: 'SIGNAL_SIGKILL' }),
        });
        if (!answer.ok) throw new Error(`the signal was answered ${answer.status}`);
      },
    });
  },
};

/** Keeps the tokens of sandboxes, which are asked for once. */
class Tokens {
  readonly #known = new Map<string, string>();

  async of(daemon: Daemon, id: string): Promise<string> {
    const known = this.#known.get(id) ?? (await tokenOf(daemon, id));
    this.#known.set(id, known);
    return known;
  }
}

const tokenOf = async (daemon: Daemon, id: string): Promise<string> => {
  const url = new URL(`/v2/sandboxes/${compatibleId(id)}/connect`, daemon.compatibleUrl);
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'X-API-KEY': tenantKeyOf(daemon), 'Content-Type': 'application/json' },
    body: '{"timeout":3600}',
  });
  const { envdAccessToken } = (await answer.json()) as { readonly envdAccessToken?: string };
  if (!envdAccessToken) throw new Error(`/connect was answered ${answer.status}`);
  return envdAccessToken;
};

/** Opens a stream, and resolves once it began. */
const opened = async (
  daemon: Daemon,
  token: string,
  method: 'Start' | 'Connect',
  order: object,
): Promise<Socket> => {
  const socket = await openConnection(Number(daemon.compatibleUrl.port));
  socket.setTimeout(0);
  const message = Buffer.from(JSON.stringify(order));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  socket.write(
    [
      `POST /process.Process/${method} HTTP/1.1`,
      'Host: 127.0.0.1',
      `X-Access-Token: ${token}`,
      'Content-Type: application/connect+json',
      'Connect-Protocol-Version: 1',
      `Keepalive-Ping-Interval: ${KEEPALIVE_SECONDS}`,
      `Content-Length: ${head.length + message.length}`,
      '',
      '',
    ].join('\r\n'),
  );
  socket.write(Buffer.concat([head, message]));
  await hearing(socket, '"start"');
  return socket;
};
