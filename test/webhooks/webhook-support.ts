import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Requests } from '../../src/contracts/coordination/requests.ts';
import type { Log } from '../../src/contracts/log.ts';
import type { ApprovalRecord } from '../../src/model/approvals/approval.ts';
import { post } from '../../src/services/webhooks/post.ts';
import { Webhooks, type WebhooksDeps } from '../../src/services/webhooks/webhooks.ts';
import { KeptAnswers } from '../../src/embedded/store/kept-answers.ts';
import { aCoordination, FEW_BYTES } from '../support/fakes/a-coordination.ts';
import { MemoryDeadLetters } from '../support/fakes/memory-dead-letters.ts';
import type { MemoryAnswerRows } from '../support/fakes/memory-answer-rows.ts';
import { MemoryMetrics } from '../support/fakes/memory-metrics.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';

export const SECRET = 'a secret that only both of us know';
export const GIVE_UP_MS = 3_600_000;

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  /** Its path is as good as a password. */
  readonly url: string;
  readonly received: Received[];
  /** How the next requests are answered, one each; all others with 204. */
  readonly answers: ((response: ServerResponse) => void)[];
  readonly ids: () => readonly string[];
  readonly got: (count: number) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export const status =
  (code: number, headers = {}) =>
  (response: ServerResponse): void => {
    response.writeHead(code, headers).end('a body that nobody reads');
  };
/** The client waits until it gives up. */
export const hang = (): void => undefined;

/** A real server that is told of approvals. */
export const aReceiver = async (): Promise<Receiver> => {
  const received: Received[] = [];
  const answers: Receiver['answers'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
      (answers.shift() ?? status(204))(response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/hooks/secret-path?token=secret-token`,
    received,
    answers,
    ids: () => received.map(({ headers }) => String(headers['x-sandpool-delivery'])),
    got: (count) => eventually(() => received.length >= count, `${count} messages came`),
    stop: async () => {
      server.closeAllConnections();
      if (!server.listening) return;
      server.close();
      await once(server, 'close');
    },
  };
};

/** As a receiver would: over the timestamp and the body as it came. */
export const isSigned = ({ headers, body }: Received, secret = SECRET): boolean =>
  headers['x-sandpool-signature'] ===
  `sha256=${createHmac('sha256', secret)
    .update(`${String(headers['x-sandpool-timestamp'])}.${body}`)
    .digest('hex')}`;

export const anApproval = (
  id: string,
  createdAt: number,
  part: Partial<ApprovalRecord> = {},
): ApprovalRecord => ({
  id,
  revision: '1',
  principal: {
    namespace: 'blue',
    team: 'blue',
    user: 'ada',
    keyId: 'key-1',
    role: 'user',
    persons: ['ada'],
  },
  operation: 'deletePool',
  onceOnly: false,
  method: 'DELETE',
  path: '/sandboxpools/web',
  route: 'REST DELETE /sandboxpools/{poolName}',
  namespace: 'blue',
  query: 'force=true',
  headers: { 'idempotency-key': 'mine' },
  summary: 'Delete a pool: DELETE /sandboxpools/web',
  binding: 'the binding',
  content: 'the sealed content',
  createdAt,
  expiresAt: createdAt + 900_000,
  status: 'pending',
  ...part,
});

export interface TestWebhooks {
  readonly webhooks: Webhooks;
  readonly clock: TestClock;
  readonly metrics: MemoryMetrics;
  readonly log: readonly string[];
  /** Whether this replica leads. */
  readonly life: { leads: boolean };
  /** Whether something is being sent. */
  readonly isSending: () => boolean;
  /** Moves the clock while nothing is being sent, until `isSo`. */
  readonly until: (isSo: () => boolean, what: string, step?: number) => Promise<void>;
}

/** A replica that tells receivers over real connections; its clock stands still until it is moved. */
export const someWebhooks = (
  urls: readonly string[],
  {
    clock = new TestClock(),
    marks = aCoordination(clock),
    leads = true,
    deadLetters = new MemoryDeadLetters(clock),
    ...more
  }: Partial<Omit<WebhooksDeps, 'clock' | 'marks' | 'leads'>> & {
    readonly clock?: TestClock;
    readonly marks?: Pick<Requests, 'openRequest' | 'keepAnswer' | 'giveUpRequest'>;
    readonly leads?: boolean;
  } = {},
): TestWebhooks => {
  const metrics = new MemoryMetrics();
  const lines: string[] = [];
  const write = (fields: object, event: string): void => {
    lines.push(`${event} ${JSON.stringify(fields, (_, value: unknown) => shown(value))}`);
  };
  const log: Log = {
    detailed: true,
    trace: write,
    debug: write,
    info: write,
    warn: write,
    error: write,
  };
  const life = { leads };
  let sending = 0;
  const webhooks = new Webhooks({
    receivers: urls.map((url) => ({ url, secret: SECRET })),
    marks,
    deadLetters,
    clock,
    log,
    metrics,
    post: async (what) => {
      sending += 1;
      return await post(what).finally(() => {
        sending -= 1;
      });
    },
    terms: {
      clusterId: 'local',
      consoleUrl: 'https://console.example.com',
      userAgent: 'sandpool/test',
    },
    giveUpMs: GIVE_UP_MS,
    leads: () => life.leads,
    ...more,
  });
  return {
    webhooks,
    clock,
    metrics,
    log: lines,
    life,
    isSending: () => sending > 0,
    until: (isSo, what, step = 1_000) =>
      eventually(() => {
        if (isSo()) return true;
        if (sending === 0) clock.advance(step);
        return false;
      }, what),
  };
};

/** What an embedded daemon remembers over restarts. */
export const keptMarks = async (
  clock: TestClock,
  rows: MemoryAnswerRows,
): Promise<Pick<Requests, 'openRequest' | 'keepAnswer' | 'giveUpRequest'>> => {
  const answers = new KeptAnswers({ rows, clock, log: quietLog, bounds: FEW_BYTES });
  await answers.start();
  return {
    openRequest: (mark) => answers.open(mark),
    keepAnswer: (mark, owner, answer) => answers.keep(mark, owner, answer),
    giveUpRequest: async (mark) => answers.giveUp(mark),
  };
};

const shown = (value: unknown): unknown =>
  value instanceof Error ? `${value.name} ${value.message} ${value.stack ?? ''}` : value;
