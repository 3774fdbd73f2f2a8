import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { openBareTable } from './bare-table.ts';

/** The bare server's database thread: all rows that wait go into one commit. */

type Order = readonly [ticket: number, body: string];

const work = (port: MessagePort): void => {
  const table = openBareTable(String(workerData));
  port.on('message', (first: Order) => {
    const orders = [first];
    for (let next = receiveMessageOnPort(port); next; next = receiveMessageOnPort(port))
      orders.push(next.message as Order);
    const ids = table.insertAll(orders.map(([, body]) => body));
    port.postMessage(orders.flatMap(([ticket], at) => [ticket, ids[at] ?? 0]));
  });
};

if (parentPort) work(parentPort);
