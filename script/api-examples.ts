/**
 * Runs docs/api-by-example.md against a built daemon, and writes the answers into the page and into
 * src/http/openapi/examples.json.
 */
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { AS_SHIPPED, DaemonUnderTest } from '../test/support/harness/a-daemon.ts';
import { operationAt } from '../test/support/harness/documented-answers.ts';
import { stocked } from '../test/support/harness/on-a-daemon.ts';
import { PageSession } from '../test/support/harness/page-session.ts';
import type { OperationExample } from '../src/http/openapi/examples.ts';
import { masked, pageLines, withoutSecrets, withShown } from './page-lines.ts';

const PAGE = fileURLToPath(new URL('../docs/api-by-example.md', import.meta.url));
const FILE = fileURLToPath(new URL('../src/http/openapi/examples.json', import.meta.url));

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: string;
  readonly status: number;
  readonly type: string;
  readonly answer: string;
}

const main = async (): Promise<void> => {
  const daemon = await DaemonUnderTest.start([...AS_SHIPPED, '--replica', 'sandpool-0']);
  const exchanges: Exchange[] = [];
  const recorder = createServer(
    (request, response) => void relay(request, response, { port: daemon.run.port, exchanges }),
  );
  recorder.listen(0, '127.0.0.1');
  await once(recorder, 'listening');
  const session = new PageSession({
    dataDir: daemon.dataDir,
    host: `127.0.0.1:${(recorder.address() as AddressInfo).port}`,
  });
  try {
    await stocked(daemon.client(), 4);
    const page = readFileSync(PAGE, 'utf8');
    const shown: string[] = [];
    for (const line of pageLines(page)) shown.push(withoutSecrets(await session.run(line)));
    const next = withShown(page, shown);
    if (masked(next) === masked(page)) return console.log('nothing has changed but ids and times');
    writeFileSync(PAGE, next);
    writeFileSync(FILE, examplesFile(exchanges));
  } finally {
    await session.close();
    recorder.close();
    recorder.closeAllConnections();
    await daemon.dispose();
  }
};

/** Records the request with its answer. */
const relay = async (
  request: IncomingMessage,
  response: ServerResponse,
  { port, exchanges }: { readonly port: number; readonly exchanges: Exchange[] },
): Promise<void> => {
  const sent = await bytesOf(request);
  const { method = 'GET', url: path = '/', headers } = request;
  const onward = httpRequest({ host: '127.0.0.1', port, method, path, headers });
  onward.end(sent);
  response.once('close', () => onward.destroy()); // a stream ends when the client has had enough
  const [answer] = (await once(onward, 'response')) as [IncomingMessage];
  response.writeHead(answer.statusCode ?? 0, answer.headers);
  if (answer.headers['content-type']?.startsWith('text/event-stream'))
    return void answer.on('error', () => {}).pipe(response);
  const body = await bytesOf(answer);
  exchanges.push({
    method,
    path,
    request: headers['content-type']?.startsWith('application/json') ? sent.toString() : '',
    status: answer.statusCode ?? 0,
    type: answer.headers['content-type'] ?? '',
    answer: withoutSecrets(body.toString()),
  });
  response.end(body);
};

const bytesOf = async (stream: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
};

/** The first success of each operation. */
const examplesFile = (exchanges: readonly Exchange[]): string => {
  const examples = new Map<string, OperationExample>();
  for (const { method, path, request, status, type, answer } of exchanges) {
    const id = operationAt(method, path.split('?')[0] ?? '')?.operation['operationId'];
    if (
      typeof id !== 'string' ||
      examples.has(id) ||
      status > 299 ||
      !type.startsWith('application/json')
    )
      continue;
    examples.set(id, {
      request: request === '' ? undefined : (JSON.parse(request) as unknown),
      status,
      answer: JSON.parse(answer) as unknown,
    });
  }
  return `${JSON.stringify(Object.fromEntries(examples), undefined, 2)}\n`;
};

await main();
