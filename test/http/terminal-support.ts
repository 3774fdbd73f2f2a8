import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { once } from 'node:events';
import { WebSocket, type ClientOptions } from 'ws';
import { terminalUpgrades, type TerminalDeps } from '../../src/http/terminal/terminal.ts';
import type {
  OpenTerminal,
  OpenTerminalRequest,
} from '../../src/actors/sandbox/commands/sandbox-operations.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

/**
 * A terminal in memory: `print` is the shell's output, `typed` what it got. With `full` it takes no
 * input.
 */
export class FakeTerminal {
  readonly request: OpenTerminalRequest;
  readonly stream: Duplex;
  readonly sizes: string[] = [];
  readonly signals: string[] = [];
  touches = 0;
  closes = 0;
  /** Bytes handed to the connection. */
  pulled = 0;
  typedBytes = 0;
  full = false;
  /** Its stream does not end with the shell: a process that the shell left behind has it open. */
  held = false;
  outOfMemory = false;
  end: (why?: 'sandbox-ended' | 'key-revoked') => void = () => {};
  exitWith: (code: number | null) => void = () => {};
  readonly #typed: Buffer[] = [];
  readonly #output: Buffer[] = [];
  #wanted = false;
  #exited = false;
  #accept: (() => void) | undefined;

  constructor(request: OpenTerminalRequest) {
    this.request = request;
    this.stream = new Duplex({
      highWaterMark: 16 * 1024,
      read: () => {
        this.#wanted = true;
        this.#pump();
      },
      write: (chunk: Buffer, _encoding, done) => {
        this.#typed.push(chunk);
        this.typedBytes += chunk.length;
        if (this.full) this.#accept = done;
        else done();
      },
    });
  }

  get typed(): string {
    return this.typedBytesJoined().toString('utf8');
  }

  typedBytesJoined(): Buffer {
    return Buffer.concat(this.#typed);
  }

  print(output: string | Buffer): void {
    const bytes = Buffer.from(output);
    for (let from = 0; from < bytes.length; from += 16 * 1024)
      this.#output.push(bytes.subarray(from, from + 16 * 1024));
    this.#pump();
  }

  /** The pty takes input again. */
  drain(): void {
    this.full = false;
    this.#accept?.();
  }

  #pump(): void {
    while (this.#wanted && this.#output.length > 0) {
      const chunk = this.#output.shift() ?? Buffer.alloc(0);
      this.pulled += chunk.length;
      this.#wanted = this.stream.push(chunk);
    }
    if (this.#exited && !this.held && this.#output.length === 0) this.stream.push(null);
  }

  opened(): OpenTerminal {
    const hasMemoryRunOut = (): boolean => this.outOfMemory;
    const exit = new Promise<number | null>((resolve) => {
      this.exitWith = (code) => {
        this.#exited = true;
        this.#pump();
        resolve(code);
      };
    });
    return {
      caller: {
        namespace: 'blue',
        team: 'blue',
        user: this.request.token,
        role: 'user',
        keyId: this.request.token,
      },
      terminal: {
        stream: this.stream,
        exit,
        get outOfMemory() {
          return hasMemoryRunOut();
        },
        resize: (cols, rows) => void this.sizes.push(`${cols}x${rows}`),
        signal: (name) => void this.signals.push(name),
        close: () => {},
      },
      touch: () => void (this.touches += 1),
      ended: new Promise((resolve) => {
        this.end = (why = 'sandbox-ended') => {
          resolve(why);
        };
      }),
      close: () => void (this.closes += 1),
    };
  }
}

export interface TerminalDaemon {
  readonly clock: TestClock;
  readonly terminals: FakeTerminal[];
  /** Terminals asked for, also those refused. */
  readonly asked: OpenTerminalRequest[];
  readonly address: string;
  readonly port: number;
  refuseWith: Error | undefined;
  /** While set, opening waits for it. */
  hold: Promise<void> | undefined;
  readonly open: (query?: string, protocols?: string[], options?: ClientOptions) => WebSocket;
  readonly stopTerminals: () => Promise<void>;
  /** Those that the server still has open. */
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

export const SANDBOX = '0190d4a5-7b1e-7c3a-9f00-1234567890ab';
export const PATH = `/ws/clusters/local/sandboxes/${SANDBOX}/terminal`;

export const aTerminalDaemon = async (
  rules: Partial<TerminalDeps> = {},
): Promise<TerminalDaemon> => {
  const clock = new TestClock();
  const server: Server = createServer();
  const sockets = new Set<Socket>();
  const clients: WebSocket[] = [];
  server.on('connection', (socket) => sockets.add(socket));
  const daemon = {
    clock,
    terminals: [] as FakeTerminal[],
    asked: [] as OpenTerminalRequest[],
    refuseWith: undefined as Error | undefined,
    hold: undefined as Promise<void> | undefined,
  };
  const terminals = terminalUpgrades({
    clock,
    log: quietLog,
    clusterId: 'local',
    ...rules,
    operations: {
      openTerminal: async (request) => {
        daemon.asked.push(request);
        await daemon.hold;
        if (daemon.refuseWith) throw daemon.refuseWith;
        const terminal = new FakeTerminal(request);
        daemon.terminals.push(terminal);
        return terminal.opened();
      },
    },
  });
  server.on('upgrade', terminals.upgrade);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const address = `ws://127.0.0.1:${port}`;
  return Object.assign(daemon, {
    address,
    port,
    open: (query = 'token=good', protocols: string[] = [], options: ClientOptions = {}) => {
      const ws = new WebSocket(`${address}${PATH}?${query}`, protocols, {
        perMessageDeflate: false,
        ...options,
      });
      ws.on('error', () => {});
      clients.push(ws);
      return ws;
    },
    stopTerminals: terminals.stop,
    connections: () => [...sockets].filter((socket) => !socket.destroyed).length,
    close: async () => {
      for (const client of clients) client.terminate();
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  });
};

/** An open client and the terminal behind it. */
export const attached = async (
  daemon: TerminalDaemon,
  ...how: Parameters<TerminalDaemon['open']>
): Promise<{ readonly ws: WebSocket; readonly terminal: FakeTerminal }> => {
  const ws = daemon.open(...how);
  await once(ws, 'open');
  return { ws, terminal: daemon.terminals.at(-1) as FakeTerminal };
};

export interface RefusedUpgrade {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly error: string;
    readonly errorCode?: string;
    readonly detail?: Record<string, unknown>;
  };
}

/**
 * An upgrade request, byte for byte; resolves with the whole answer once the server has closed the
 * connection.
 */
export const rawUpgrade = async (
  port: number,
  target: string,
  headers: Readonly<Record<string, string | undefined>> = {},
  method = 'GET',
): Promise<RefusedUpgrade> => {
  const socket = connect(port, '127.0.0.1');
  const all: Record<string, string | undefined> = {
    Host: `127.0.0.1:${port}`,
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version': '13',
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}: ${value}`],
  );
  socket.write(`${[`${method} ${target} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await once(socket, 'end');
  socket.destroy();
  const [head = '', body = ''] = Buffer.concat(chunks).toString('utf8').split('\r\n\r\n', 2);
  const [statusLine = '', ...headerLines] = head.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(
      headerLines.map((line) => [
        line.slice(0, line.indexOf(':')).toLowerCase(),
        line.slice(line.indexOf(':') + 1).trim(),
      ]),
    ),
    body: JSON.parse(body),
  };
};

export const closeOf = async (
  ws: WebSocket,
): Promise<{ readonly code: number; readonly reason: string }> => {
  const [code, reason] = (await once(ws, 'close')) as [number, Buffer];
  return { code, reason: reason.toString() };
};
