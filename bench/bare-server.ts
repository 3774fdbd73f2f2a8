import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import Koa from 'koa';
import { openBareTable } from './bare-table.ts';

/**
 * What claims are measured against: a Koa server that does nothing but read a JSON body, commit one
 * row to SQLite (WAL, synchronous=FULL) and answer 201. `bare-server PATH MODE`; tells its parent
 * the port.
 */
export type BareMode =
  /** A transaction a request, on the main thread. */
  | 'direct'
  /** On the main thread; requests that are read in the same turn of the loop share a commit. */
  | 'gathered'
  /** In a worker thread; what waits there shares a commit. */
  | 'worker';

type Commit = (body: string) => Promise<number> | number;

const direct = (path: string): Commit => {
  const table = openBareTable(path);
  return (body) => table.insert(body);
};

const gathered = (path: string): Commit => {
  const table = openBareTable(path);
  let waiting: { readonly body: string; readonly settle: (id: number) => void }[] = [];
  const commit = (): void => {
    const batch = waiting;
    waiting = [];
    const ids = table.insertAll(batch.map(({ body }) => body));
    batch.forEach(({ settle }, at) => settle(ids[at] ?? 0));
  };
  return (body) =>
    new Promise((settle) => {
      if (waiting.push({ body, settle }) === 1) setImmediate(commit);
    });
};

const inWorker = (path: string): Commit => {
  const worker = new Worker(
    new URL(
      `./bare-worker${import.meta.url.slice(import.meta.url.lastIndexOf('.'))}`,
      import.meta.url,
    ),
    { workerData: path },
  );
  const waiting = new Map<number, (id: number) => void>();
  let ticket = 0;
  worker.on('message', (answers: readonly number[]) => {
    for (let at = 0; at < answers.length; at += 2) {
      const [number = 0, id = 0] = [answers[at], answers[at + 1]];
      waiting.get(number)?.(id);
      waiting.delete(number);
    }
  });
  return (body) =>
    new Promise((settle) => {
      const number = ticket++;
      waiting.set(number, settle);
      worker.postMessage([number, body]);
    });
};

const readBody = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => resolve(String(Buffer.concat(chunks))));
    request.on('error', reject);
  });

const serve = (path: string, mode: BareMode): void => {
  const commit = { direct, gathered, worker: inWorker }[mode](path);
  const app = new Koa({ env: 'production' });
  app.use(async (context) => {
    const claim: unknown = JSON.parse(await readBody(context.req));
    const id = await commit(JSON.stringify(claim));
    context.status = 201;
    context.set('Content-Type', 'application/json; charset=utf-8');
    context.body = JSON.stringify({ id });
  });
  const server = createServer({ noDelay: true });
  const handle = app.callback();
  server.on('request', (request, response) => {
    void handle(request, response);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
};

process.on('disconnect', () => process.exit(0));
const [path = '', mode = ''] = process.argv.slice(2);
serve(path, mode as BareMode);
