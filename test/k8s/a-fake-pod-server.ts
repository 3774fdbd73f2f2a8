import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer, type WebSocket } from 'ws';
import { apiServer } from '../../src/k8s/api/api-client.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { PodStreams } from '../../src/k8s/streams/pod-streams.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { json, plainAccess } from './a-fake-api-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/** One channelled WebSocket, from the API server's side. */
export class FakeLink {
  readonly url: URL;
  readonly authorization: string | undefined;
  readonly ws: WebSocket;
  readonly #frames: (readonly [number, string])[] = [];

  constructor(ws: WebSocket, url: URL, authorization: string | undefined) {
    this.ws = ws;
    this.url = url;
    this.authorization = authorization;
    ws.on('message', (data: Buffer) => {
      this.#frames.push([data[0] ?? -1, data.toString('latin1', 1)]);
    });
  }

  get command(): readonly string[] {
    return this.url.searchParams.getAll('command');
  }

  /** What came on a channel so far. */
  came(channel: number): string {
    return this.#frames.flatMap(([of, text]) => (of === channel ? [text] : [])).join('');
  }

  send(channel: number, bytes: string | Buffer): void {
    this.ws.send(Buffer.concat([Buffer.of(channel), Buffer.from(bytes)]));
  }

  /** Ends a command as API servers do. */
  status(code: number): void {
    this.send(
      3,
      JSON.stringify(
        code === 0
          ? { status: 'Success' }
          : {
              status: 'Failure',
              reason: 'NonZeroExitCode',
              details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
            },
      ),
    );
    this.ws.close(1000);
  }

  fail(message: string): void {
    this.send(
      3,
      JSON.stringify({ status: 'Failure', reason: 'InternalError', message, code: 500 }),
    );
    this.ws.close(1000);
  }
}

export interface FakePod {
  readonly streams: PodStreams;
  readonly pod: PodTarget;
  readonly links: FakeLink[];
  /** What the kubelet answers to every way into the Pod, in place of opening it. */
  refusal: { readonly status: number; readonly body: string } | undefined;
  /** What the newest file of its log has, each line with its time. */
  logged: readonly string[];
  /** Its kubelet tells a follower what is there, and nothing after that. */
  losesTrack: boolean;
  /** Of its log, so far: the paths with their queries. */
  readonly logRequests: readonly string[];
  /** Called at each refusal. */
  refused: () => void;
  /** The kubelet hangs: a way into the Pod gets no answer. */
  isHung: boolean;
  /** How many were tried while it hangs. */
  readonly ways: number;
  /** The Pod is no more. */
  isGone: boolean;
  /** What reads of the Pod wait for. */
  read: Promise<void>;
  close(): Promise<void>;
}

/**
 * A Pod that runs, behind an API server that can't tunnel, and whose kubelet does as the test says:
 * for what no kubelet here does. `pod`: what its object is, in part.
 */
export const aFakePod = async (
  attend: (link: FakeLink) => void,
  {
    status,
    ...times
  }: {
    readonly status?: object;
    readonly pingEveryMs?: number;
    readonly openWithinMs?: number;
    readonly answerWithinMs?: number;
    readonly silenceMs?: number;
  } = {},
): Promise<FakePod> => {
  const running = {
    phase: 'Running',
    containerStatuses: [{ name: 'main', state: { running: {} } }],
  };
  const logRequests: string[] = [];
  const server = createServer((request, response) => {
    const isLog = request.url?.includes('/log?') === true;
    if (isLog) logRequests.push(request.url ?? '');
    if (fake.isGone) json(response, POD_GONE, 404);
    else if (isLog && fake.refusal) {
      fake.refused();
      response.writeHead(fake.refusal.status).end(fake.refusal.body);
    } else if (isLog && fake.losesTrack && request.url?.includes('follow=true'))
      response.write(tailOf(fake.logged, request.url));
    else if (isLog) response.end(tailOf(fake.logged, request.url ?? ''));
    else
      void fake.read.then(() => {
        json(response, { metadata: { uid: 'u1' }, status: status ?? running });
      });
  });
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => [...offered][0] ?? false,
  });
  const links: FakeLink[] = [];
  const hung: Duplex[] = [];
  server.on('upgrade', (request, socket, head) => {
    if (fake.isHung) {
      hung.push(socket);
      return;
    }
    if (fake.refusal) {
      const { status: code, body } = fake.refusal;
      fake.refused();
      socket.end(
        `HTTP/1.1 ${code} Refused\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (ws) => {
      const link = new FakeLink(
        ws,
        new URL(request.url ?? '', 'http://fake'),
        request.headers.authorization,
      );
      links.push(link);
      attend(link);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const access = plainAccess((server.address() as AddressInfo).port, {
    authorization: () => 'Bearer secret',
  });
  const api = apiServer({ metrics: silentMetrics, access, version: 'test' });
  const streams = new PodStreams({
    access,
    api: api.lane('claims'),
    log: quietLog,
    version: 'test',
    ...times,
  });
  const fake: FakePod = {
    streams,
    links,
    refusal: undefined,
    logged: [],
    losesTrack: false,
    logRequests,
    refused: () => undefined,
    isHung: false,
    get ways() {
      return hung.length;
    },
    isGone: false,
    read: Promise.resolve(),
    pod: { namespace: 'team', name: 'p', uid: 'u1', container: 'main' },
    close: async () => {
      for (const { ws } of links) ws.terminate();
      for (const socket of hung) socket.destroy();
      await streams.stop();
      await api.close();
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return fake;
};

const tailOf = (lines: readonly string[], url: string): string => {
  const asked = Number(
    new URL(url, 'http://kubelet').searchParams.get('tailLines') ?? lines.length,
  );
  return lines
    .slice(-asked)
    .map((line) => `${line}\n`)
    .join('');
};

/** The API server's own word that there is no such Pod, and what it makes of a kubelet's 404. */
export const POD_GONE = {
  kind: 'Status',
  status: 'Failure',
  reason: 'NotFound',
  code: 404,
  message: 'the server could not find the requested resource ( pods p)',
  details: { name: 'p', kind: 'pods' },
};
