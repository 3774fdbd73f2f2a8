import type { IncomingMessage } from 'node:http';
import { WebSocket, type ClientOptions } from 'ws';
import { within } from './a-daemon.ts';
import type { HttpClient } from './http-client.ts';

/** Shown in errors. */
const SEEN_LENGTH = 600;

export interface TerminalRequest {
  readonly cols?: number;
  readonly rows?: number;
  readonly protocols?: readonly string[];
  /** By default a fresh one. */
  readonly token?: string;
  /** By default; else `protocols` carries it. */
  readonly tokenInUrl?: boolean;
  readonly cluster?: string;
  readonly options?: ClientOptions;
}

export class UpgradeRefused extends Error {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;

  constructor(response: IncomingMessage, text: string) {
    super(`the upgrade was answered ${response.statusCode}: ${text}`);
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.body = JSON.parse(text) as Readonly<Record<string, unknown>>;
  }
}

/** A WebSocket terminal that keeps all output. */
export class TerminalUnderTest {
  readonly socket: WebSocket;
  readonly frames: Readonly<Record<string, unknown>>[] = [];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  #output = '';

  private constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on('message', (data: Buffer, isBinary) => {
      if (isBinary) this.#output += data.toString('latin1');
      else this.frames.push(JSON.parse(data.toString()) as Readonly<Record<string, unknown>>);
    });
  }

  /** Rejects with UpgradeRefused. */
  static async open(
    daemon: { readonly run: { readonly port: number } },
    client: HttpClient,
    id: string,
    spec: TerminalRequest = {},
  ): Promise<TerminalUnderTest> {
    const token = spec.token ?? (await tokenFor(client, id));
    const query = new URLSearchParams({
      ...(spec.tokenInUrl === false ? {} : { token }),
      ...(spec.cols === undefined ? {} : { cols: String(spec.cols) }),
      ...(spec.rows === undefined ? {} : { rows: String(spec.rows) }),
    });
    const url = `ws://127.0.0.1:${daemon.run.port}/ws/clusters/${spec.cluster ?? 'local'}/sandboxes/${id}/terminal?${query.toString()}`;
    const socket = new WebSocket(url, [...(spec.protocols ?? [])], {
      perMessageDeflate: false,
      ...spec.options,
    });
    const terminal = new TerminalUnderTest(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.on('error', reject);
      socket.once('unexpected-response', (_request, response: IncomingMessage) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
        });
        response.once('end', () => reject(new UpgradeRefused(response, text)));
      });
    });
    return terminal;
  }

  /** A character per byte. */
  get output(): string {
    return this.#output;
  }

  type(text: string): void {
    this.socket.send(Buffer.from(text));
  }
  control(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }

  shows(what: RegExp | string): Promise<string> {
    return within(
      `the terminal shows ${String(what)}`,
      () => {
        const found =
          typeof what === 'string' ? this.#output.includes(what) : what.test(this.#output);
        return found ? this.#output : undefined;
      },
      () => this.#output.slice(-SEEN_LENGTH),
    );
  }

  async ask(command: string): Promise<string> {
    const mark = Math.random().toString(36).slice(2);
    // The quotes distinguish output from the echoed line.
    this.type(`echo 'be'gin${mark}; ${command}; echo 'en'd${mark}\n`);
    const shown = (await this.shows(`end${mark}`)).replaceAll(/\r|\u001b\[\?2004[hl]/g, '');
    return shown.slice(
      shown.indexOf(`begin${mark}\n`) + `begin${mark}\n`.length,
      shown.indexOf(`end${mark}`),
    );
  }

  async hangUp(): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}

export const tokenFor = async (client: HttpClient, id: string): Promise<string> => {
  const answer = await client.post(`/sandboxes/${id}/exec-token`, {});
  if (answer.json.token === undefined)
    throw new Error(`exec-token answered ${answer.status}: ${answer.text}`);
  return answer.json.token;
};
