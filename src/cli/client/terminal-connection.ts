import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Duplex } from 'node:stream';
import { WebSocket } from 'ws';
import { fieldsOf } from './api-error.ts';
import { asConnectionFailure, errorOf, noAnswerFrom } from './http-exchange.ts';

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

interface TerminalAddress extends TerminalSize {
  readonly server: URL;
  readonly sandboxId: string;
  /** Single-use; sent in a header, not in the URL. */
  readonly token: string;
  readonly deadlineMs: number;
}

export interface TerminalEnd {
  /** Undefined if the shell did not end by itself. */
  readonly exitCode: number | undefined;
  /** Killed because the sandbox ran out of memory. */
  readonly oomKilled?: true;
  /**
   * 1000 the shell ended, 1006 the connection broke, 1012 the daemon stops, 4001 the key was
   * revoked, 4004 the sandbox ended, 4008 the client reads too slowly.
   */
  readonly code: number;
  readonly reason: string;
}

/** The server pings every 20 s; then the connection is broken. */
const SILENCE_MS = 45_000;
/** Bounds one message to the server. */
const MESSAGE_BYTES = 32 * 1024;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** For the server's answer to a close. */
const CLOSE_WITHIN_MS = 3_000;

export const openTerminal = async (address: TerminalAddress): Promise<TerminalConnection> => {
  const { server, sandboxId, token, cols, rows, deadlineMs } = address;
  const base = server.href.replace(/^http/, 'ws').replace(/\/+$/, '');
  // the id names the cluster, unless the sandbox belongs to the answering daemon
  const [cluster] = sandboxId.includes('.', 1) ? sandboxId.split('.') : ['local'];
  const [of, id] = [cluster ?? '', sandboxId].map(encodeURIComponent);
  const options = {
    perMessageDeflate: false,
    maxPayload: MAX_OUTPUT_BYTES,
    handshakeTimeout: deadlineMs,
    followRedirects: false,
    closeTimeout: CLOSE_WITHIN_MS,
  };
  const ws = new WebSocket(
    `${base}/ws/clusters/${of}/sandboxes/${id}/terminal?cols=${cols}&rows=${rows}`,
    ['sandpool.terminal.v1', `sandpool.token.${token}`],
    options,
  );
  // added at once, so that no frame is missed
  const connection = new TerminalConnection(ws);
  const refusal = new Promise<never>((_resolve, reject) => {
    ws.once('unexpected-response', (_request, response: IncomingMessage) => {
      errorOf(response)
        .then(reject, reject)
        .finally(() => ws.terminate());
    });
  });
  ws.on('error', () => {}); // an aborted attempt emits one more error
  try {
    await Promise.race([once(ws, 'open'), refusal]);
  } catch (error) {
    if (error instanceof Error && error.message === 'Opening handshake has timed out')
      throw noAnswerFrom(server, deadlineMs, { cause: error });
    throw asConnectionFailure(error, server);
  }
  return connection;
};

/** Speaks `sandpool.terminal.v1`, with back-pressure. */
export class TerminalConnection {
  readonly stream: Duplex;
  /** Never rejects. */
  readonly ended: Promise<TerminalEnd>;
  readonly #ws: WebSocket;
  #exitCode: number | undefined;
  #oomKilled = false;
  #complaint = '';

  constructor(ws: WebSocket) {
    this.#ws = ws;
    this.stream = new Duplex({
      read: () => ws.resume(),
      write: (chunk: Buffer, _encoding, done) => this.#write(chunk, done),
      destroy: (error, done) => {
        this.close();
        done(error);
      },
    });
    // binaryType is nodebuffer
    ws.on('message', (data, isBinary) => this.#onMessage(data as Buffer, isBinary));
    ws.on('error', (error) => {
      this.#complaint = error.message;
    });
    this.ended = this.#untilEnded();
  }

  /** From 1 to 1000. */
  resize(cols: number, rows: number): void {
    this.#say({ type: 'resize', cols, rows });
  }

  signal(name: string): void {
    this.#say({ type: 'signal', name });
  }

  /** Safe to repeat. */
  close(): void {
    this.#ws.resume(); // so that the server's answer to the close is read
    this.#ws.close(1000);
  }

  #say(frame: object): void {
    if (this.#ws.readyState === WebSocket.OPEN) this.#ws.send(JSON.stringify(frame));
  }

  /** A failed send ends the connection, which `ended` reports. */
  #write(chunk: Buffer, done: () => void): void {
    let from = 0;
    for (; from + MESSAGE_BYTES < chunk.length; from += MESSAGE_BYTES)
      this.#ws.send(chunk.subarray(from, from + MESSAGE_BYTES), { binary: true });
    this.#ws.send(chunk.subarray(from), { binary: true }, () => done());
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    if (isBinary) {
      if (!this.stream.destroyed && !this.stream.push(data)) this.#ws.pause();
      return;
    }
    const { type, exitCode, oomKilled, error } = fieldsOf(data.toString('utf8'));
    if (type === 'exit' && typeof exitCode === 'number') this.#exitCode = exitCode;
    if (type === 'exit') this.#oomKilled = oomKilled === true;
    if (type === 'error' && typeof error === 'string') this.#complaint = error;
  }

  #untilEnded(): Promise<TerminalEnd> {
    const ws = this.#ws;
    return new Promise((resolve) => {
      const silence = setTimeout(() => {
        if (ws.isPaused) return void silence.refresh(); // silent because we do not read
        this.#complaint = 'the server is silent';
        ws.terminate();
      }, SILENCE_MS);
      ws.on('message', () => silence.refresh());
      ws.on('ping', () => silence.refresh());
      ws.on('close', (code, reason) => {
        clearTimeout(silence);
        if (!this.stream.destroyed) this.stream.push(null);
        resolve({
          exitCode: this.#exitCode,
          ...(this.#oomKilled ? { oomKilled: true } : {}),
          code,
          reason: reason.toString() || this.#complaint,
        });
      });
    });
  }
}
