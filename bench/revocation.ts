import { once } from 'node:events';
import { WebSocket } from 'ws';
import { encodeAsk, KeptConnection, type Ask } from './kept-connection.ts';
import { pause } from './process-facts.ts';

/** What revoking a key took, from asking for it until it was so on every daemon. Milliseconds. */
export interface Revocation {
  readonly refusedMs: number;
  readonly closedMs: number;
}

export interface RevocationTerms {
  /** Of each daemon of the service. */
  readonly ports: readonly number[];
  /** Of the user whose further key is revoked, and whose sandbox this is. */
  readonly key: string;
  readonly sandboxId: string;
  /** Whose daemon is asked. */
  readonly at: number;
}

const LOOK_EVERY_MS = 2;
const WITHIN_MS = 30_000;
const REVOKED = 4_001;

/**
 * Makes a key, opens a terminal by it on each daemon, revokes it on one of them, and looks until
 * all refuse it and have closed the terminals.
 */
export const revokeOnce = async ({
  ports,
  key,
  sandboxId,
  at,
}: RevocationTerms): Promise<Revocation> => {
  const connections = await Promise.all(ports.map((port) => KeptConnection.open(port)));
  const asked = connections[at % ports.length];
  if (!asked) throw new Error('there is no daemon');
  try {
    const { apiKey, keyId } = await answerTo<{ readonly apiKey: string; readonly keyId: string }>(
      asked,
      { method: 'POST', path: '/api-keys', key, body: '{}' },
      201,
    );
    const terminals = await Promise.all(
      ports.map(async (port, n) => {
        const connection = connections[n];
        if (!connection) throw new Error('there is no such daemon');
        const { token } = await answerTo<{ readonly token: string }>(
          connection,
          { method: 'POST', path: `/sandboxes/${sandboxId}/exec-token`, key: apiKey },
          200,
        );
        const socket = new WebSocket(
          `ws://127.0.0.1:${port}/ws/clusters/local/sandboxes/${sandboxId}/terminal?token=${token}`,
        );
        await once(socket, 'open');
        return socket;
      }),
    );
    const closed = terminals.map(async (socket) => {
      const [code] = (await once(socket, 'close')) as [number];
      if (code !== REVOKED) throw new Error(`a terminal was closed with ${code}`);
      return performance.now();
    });
    const began = performance.now();
    const elsewhere = connections
      .filter((connection) => connection !== asked)
      .map((connection) => untilRefused(connection, apiKey, began));
    const here = answerTo(asked, { method: 'DELETE', path: `/api-keys/${keyId}`, key }, 200).then(
      () => untilRefused(asked, apiKey, began),
    );
    const last = async (moments: readonly Promise<number>[]): Promise<number> =>
      Math.max(...(await Promise.all(moments))) - began;
    const [refusedMs, closedMs] = await Promise.all([last([...elsewhere, here]), last(closed)]);
    return { refusedMs, closedMs };
  } finally {
    for (const connection of connections) connection.close();
  }
};

/** When the first request was answered that was refused. */
const untilRefused = async (
  connection: KeptConnection,
  key: string,
  began: number,
): Promise<number> => {
  for (;;) {
    const { status } = await connection.send(
      encodeAsk({ method: 'GET', path: '/sandboxes?limit=1', key }),
    );
    // after some of them an address is told to wait
    if (status === 401 || status === 429) return performance.now();
    if (performance.now() - began > WITHIN_MS) throw new Error('a revoked key is still good');
    await pause(LOOK_EVERY_MS);
  }
};

const answerTo = async <T>(connection: KeptConnection, ask: Ask, status: number): Promise<T> => {
  const answer = await connection.send(encodeAsk(ask));
  if (answer.status !== status)
    throw new Error(
      `${ask.method} ${ask.path} was answered with ${answer.status}: ${answer.body.slice(0, 300)}`,
    );
  return JSON.parse(answer.body) as T;
};
