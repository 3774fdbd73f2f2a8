import { once } from 'node:events';
import type { Socket } from 'node:net';
import { hearing, openConnection } from '../answer-stream.ts';
import { tenantKeyOf } from '../claimed-sandbox.ts';
import { COMPATIBLE_FLAGS, type Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { SILENT_STREAMS, silentStreams } from '../silent-streams.ts';
import { compatibleId } from '../../src/e2b/sandbox-id.ts';

/** E2B's SDKs ask for 50: so each stream says it once while it is measured. */
const KEEPALIVE_SECONDS = 15;

export const silent: Figure = {
  name: 'e2b:silent',
  about: `${SILENT_STREAMS} streams of E2B's SDKs that say nothing but that they are alive`,
  run: async (bench) => {
    const tokens = new Map<string, string>();
    return await silentStreams(bench, {
      what: "silent streams of E2B's SDKs",
      flags: COMPATIBLE_FLAGS,
      open: async (daemon, id) => {
        const token = tokens.get(id) ?? (await tokenOf(daemon, id));
        tokens.set(id, token);
        return await opened(Number(daemon.compatibleUrl.port), token);
      },
    });
  },
};

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

const opened = async (port: number, token: string): Promise<Socket> => {
  const socket = await openConnection(port);
  socket.setTimeout(0);
  const order = { process: { cmd: '/bin/sleep', args: ['infinity'] }, stdin: false };
  const message = Buffer.from(JSON.stringify(order));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  socket.write(
    [
      'POST /process.Process/Start HTTP/1.1',
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
  if (!socket.write(Buffer.concat([head, message]))) await once(socket, 'drain');
  await hearing(socket, '"start"');
  return socket;
};
