import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, openSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { AuditSink } from '../../contracts/audit.ts';
import type { Log } from '../../contracts/log.ts';

export type ControlCommands = Readonly<
  Record<string, (body: unknown) => Promise<{ readonly status: number; readonly body: object }>>
>;

export interface ControlDeps {
  readonly dataDir: string;
  readonly backup: (signal: AbortSignal) => Promise<Readable>;
  readonly commands?: ControlCommands;
  readonly log: Log;
  readonly audit?: AuditSink;
}

/**
 * Serves HTTP on the socket `control.sock` without a key, since only its owner can open the folder.
 * `POST /backup` answers with a gzipped tar, or 409 during another backup.
 */
export class ControlServer {
  readonly #deps: ControlDeps;
  readonly #server: Server;
  readonly #stopping = new AbortController();
  readonly #answering = new Set<Promise<void>>();
  #folder: number | undefined;
  #busy = false;

  constructor(deps: ControlDeps) {
    this.#deps = deps;
    this.#server = createServer((request, response) => {
      const answering = this.#answer(request, response)
        .catch((error: unknown) => {
          deps.log.warn({ error }, 'control-request-failed');
          if (response.headersSent) response.destroy();
          else refuse(response, 500, error instanceof Error ? error.message : String(error));
        })
        .finally(() => this.#answering.delete(answering));
      this.#answering.add(answering);
    });
    this.#server.maxConnections = MOST_CONNECTIONS;
  }

  /** Replaces the socket of a killed daemon. */
  async start(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { dataDir } = this.#deps;
    this.#folder = openSync(dataDir, 'r');
    const path = controlSocket(this.#folder);
    rmSync(path, { force: true });
    this.#server.listen(path);
    await once(this.#server, 'listening');
    chmodSync(path, 0o600);
  }

  /** Cancels backups, and resolves when no request is in progress. May be repeated. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#folder === undefined) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    await Promise.all(this.#answering);
    closeSync(this.#folder);
    this.#folder = undefined;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const command =
      request.method === 'POST' ? this.#deps.commands?.[request.url ?? ''] : undefined;
    if (command) {
      const { status, body } = await command(await readJson(request));
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
      return;
    }
    request.resume();
    if (request.method !== 'POST' || request.url !== '/backup')
      return refuse(response, 404, 'there is nothing at this path');
    if (this.#busy) return refuse(response, 409, 'a backup is already in progress');
    this.#busy = true;
    try {
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const backup = await this.#deps.backup(AbortSignal.any([gone.signal, this.#stopping.signal]));
      this.#deps.audit?.note({
        requestId: randomUUID(),
        via: 'control-socket',
        operation: 'backup',
        status: 200,
      });
      this.#deps.log.info({}, 'backup-begun');
      response.writeHead(200, { 'content-type': 'application/gzip' });
      await pipeline(backup, response);
      this.#deps.log.info({}, 'backup-sent');
    } finally {
      this.#busy = false;
    }
  }
}

const MOST_CONNECTIONS = 8;
const MOST_BYTES = 16_384;

const readJson = async (request: IncomingMessage): Promise<unknown> => {
  let text = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) {
    text += chunk;
    if (text.length > MOST_BYTES) throw new Error('the request is too long');
  }
  return text === '' ? {} : (JSON.parse(text) as unknown);
};

/** A socket's path is limited to 107 bytes. */
const controlSocket = (folder: number): string => `/proc/self/fd/${folder}/control.sock`;

const refuse = (response: ServerResponse, status: number, error: string): void => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ error }));
};
