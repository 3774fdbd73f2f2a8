import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  parentPort,
  receiveMessageOnPort,
  Worker,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import Koa from 'koa';
import { connect } from '../src/embedded/store/database-library.ts';
import type { BareOrder } from './bare.ts';
import { answerOrders } from './child.ts';

/**
 * Compared with claims: reads a JSON body, commits one row to SQLite with the daemon's library and
 * settings, and answers 201.
 */

/** Durable when it resolves. */
type Commit = (body: string) => Promise<number> | number;

const openTable = (path: string) => {
  const connection = connect(path, { busyTimeoutMs: 100 });
  connection.exec(
    'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL',
  );
  connection.exec('CREATE TABLE claims (id INTEGER PRIMARY KEY, body TEXT NOT NULL)');
  const statement = connection.prepare('INSERT INTO claims (body) VALUES (?)');
  const insert = (body: string): number => Number(statement.run(body).lastInsertRowid);
  const insertAll = (bodies: readonly string[]): readonly number[] => {
    connection.exec('BEGIN IMMEDIATE');
    const ids = bodies.map(insert);
    connection.exec('COMMIT');
    return ids;
  };
  return { insert, insertAll };
};

const direct = (path: string): Commit => openTable(path).insert;

const gathered = (path: string): Commit => {
  const { insertAll } = openTable(path);
  let waiting: { readonly body: string; readonly settle: (id: number) => void }[] = [];
  const commit = (): void => {
    const batch = waiting;
    waiting = [];
    const ids = insertAll(batch.map(({ body }) => body));
    batch.forEach(({ settle }, at) => settle(ids[at] ?? 0));
  };
  return (body) =>
    new Promise((settle) => {
      if (waiting.push({ body, settle }) === 1) setImmediate(commit);
    });
};

type Row = readonly [ticket: number, bodyOrId: string | number];

const inWorker = (path: string): Commit => {
  const worker = new Worker(new URL(import.meta.url), { workerData: path });
  const waiting = new Map<number, (id: number) => void>();
  let tickets = 0;
  worker.on('message', (rows: readonly Row[]) => {
    for (const [ticket, id] of rows) {
      waiting.get(ticket)?.(Number(id));
      waiting.delete(ticket);
    }
  });
  return (body) =>
    new Promise((settle) => {
      const ticket = tickets++;
      waiting.set(ticket, settle);
      worker.postMessage([ticket, body] satisfies Row);
    });
};

/** All waiting rows go into one commit. */
const commitAll = (port: MessagePort, path: string): void => {
  const { insertAll } = openTable(path);
  port.on('message', (first: Row) => {
    const rows = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
      rows.push(next.message as Row);
    const ids = insertAll(rows.map(([, body]) => String(body)));
    port.postMessage(rows.map(([ticket], at): Row => [ticket, ids[at] ?? 0]));
  });
};

const serve = async ({ path, mode }: BareOrder): Promise<number> => {
  const commit = { direct, gathered, worker: inWorker }[mode](path);
  const app = new Koa({ env: 'production' });
  app.use(async (context) => {
    const claim: unknown = JSON.parse(await text(context.req));
    const id = await commit(JSON.stringify(claim));
    context.status = 201;
    context.set('Content-Type', 'application/json; charset=utf-8');
    context.body = JSON.stringify({ id });
  });
  const handle = app.callback();
  const server = createServer({ noDelay: true }, (request, response) => {
    void handle(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return (server.address() as AddressInfo).port;
};

if (parentPort) commitAll(parentPort, String(workerData));
else answerOrders(serve);
