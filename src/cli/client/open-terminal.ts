import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket } from 'ws';
import { apiErrorFrom, ConnectionFailed } from './api-error.ts';
import { asConnectionFailure } from './http-exchange.ts';
import { MAX_OUTPUT_BYTES, TerminalConnection } from './terminal-connection.ts';

export interface TerminalAddress {
  readonly server: URL;
  readonly clusterId: string;
  readonly sandboxId: string;
  /** Single-use; it travels in a header, not in the URL. */
  readonly token: string;
  readonly cols: number;
  readonly rows: number;
  readonly deadlineMs: number;
}

/** Milliseconds in which the server has to answer a close. */
const CLOSE_WITHIN_MS = 3_000;
const MAX_REFUSAL_BYTES = 64 * 1024;

/**
 * Rejects with ApiError where the upgrade is refused, with ConnectionFailed where there was no
 * answer.
 */
export const openTerminal = async (address: TerminalAddress): Promise<TerminalConnection> => {
  const { server, clusterId, sandboxId, token, cols, rows } = address;
  const base = `${server.href.replace(/^http/, 'ws').replace(/\/+$/, '')}`;
  const [cluster, sandbox] = [clusterId, sandboxId].map(encodeURIComponent);
  const path = `/ws/clusters/${cluster}/sandboxes/${sandbox}/terminal`;
  const options = {
    perMessageDeflate: false,
    maxPayload: MAX_OUTPUT_BYTES,
    handshakeTimeout: address.deadlineMs,
    followRedirects: false,
    closeTimeout: CLOSE_WITHIN_MS,
  };
  const ws = new WebSocket(
    `${base}${path}?cols=${cols}&rows=${rows}`,
    ['sandpool.terminal.v1', `sandpool.token.${token}`],
    options,
  );
  // listens from the start, so that no frame is missed
  const connection = new TerminalConnection(ws);
  const refusal = new Promise<never>((_resolve, reject) => {
    ws.once('unexpected-response', (_request, response: IncomingMessage) => {
      readSome(response)
        .then((body) => {
          throw apiErrorFrom(response.statusCode ?? 0, response.headers, body);
        })
        .catch(reject)
        .finally(() => ws.terminate());
    });
  });
  ws.on('error', () => {}); // an attempt that is given up reports once more
  try {
    await Promise.race([once(ws, 'open'), refusal]);
  } catch (error) {
    if (error instanceof Error && error.message === 'Opening handshake has timed out') {
      throw new ConnectionFailed(
        `no answer from ${server.origin} within ${address.deadlineMs / 1_000} s`,
        'DEADLINE',
        { cause: error },
      );
    }
    throw asConnectionFailure(error, server);
  }
  return connection;
};

const readSome = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    chunks.push(chunk);
    if (size > MAX_REFUSAL_BYTES) break;
  }
  return Buffer.concat(chunks).toString('utf8');
};
