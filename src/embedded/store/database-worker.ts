import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from 'node:worker_threads';
import { MAX_BATCH, openEngine, type DatabaseEngine } from './database-engine.ts';
import type {
  Call,
  CheckpointOrder,
  EngineOptions,
  FromWorker,
  ToWorker,
} from './database-protocol.ts';

/** Runs all waiting calls in one transaction. After a failed one it does no more work. */
const work = (port: MessagePort, options: EngineOptions): void => {
  const say = (message: FromWorker): void => {
    port.postMessage(message);
  };
  let engine: DatabaseEngine;
  try {
    engine = openEngine(options);
  } catch (error) {
    fail(port, error);
    return;
  }
  port.on('message', (first: ToWorker) => {
    const calls: Call[] = [];
    const orders: CheckpointOrder[] = [];
    let closing = false;
    for (
      let next: ToWorker | undefined = first;
      next !== undefined;
      next = calls.length < MAX_BATCH ? waiting(port) : undefined
    ) {
      if (next === 'close') closing = true;
      else if (typeof next === 'string') orders.push(next);
      else calls.push(next);
      if (closing) break;
    }
    try {
      if (calls.length > 0) {
        const began = performance.now();
        const results = engine.run(calls);
        say({ kind: 'answered', results, ms: performance.now() - began });
      }
      for (const order of orders) {
        engine.checkpoints(order);
        say({ kind: 'checkpoints' });
      }
    } catch (error) {
      fail(port, error);
      return;
    }
    if (!closing) return;
    engine.close();
    port.close();
  });
};

const waiting = (port: MessagePort): ToWorker | undefined => receiveMessageOnPort(port)?.message;

const fail = (port: MessagePort, error: unknown): void => {
  const message: FromWorker = {
    kind: 'failed',
    message: error instanceof Error ? error.message : String(error),
  };
  port.postMessage(message);
  port.close();
};

if (parentPort) work(parentPort, workerData);
