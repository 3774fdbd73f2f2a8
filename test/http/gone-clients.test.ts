import { expect } from 'chai';
import { AnswerBudget } from '../../src/actors/sandbox/commands/answer-budget.ts';
import { eventually } from '../support/harness/eventually.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

const OUTPUT = Buffer.alloc(1_048_576, 'x');

describe('a client that disconnects before its first answer', () => {
  /** A server with a sandbox, and connections whose first request is never answered. */
  const aSlowServer = async (answers?: AnswerBudget) => {
    const server = await aServer(answers ? { answers } : {});
    const { operations, tenant } = server;
    await tenant.post('/sandboxpools', { name: 'shells', templateName: 'default' });
    const { json } = await tenant.post('/sandboxes', { poolName: 'shells' });
    const path = `/sandboxes/${json.sandbox!.sandboxId!}`;
    let letGo: () => void = () => {};
    let held = 0;
    const wait = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const list = operations.listPools;
    Object.assign(operations, {
      listPools: async (...call: Parameters<typeof list>) => {
        held += 1;
        await wait;
        return list(...call);
      },
    });
    const request = (line: string, body = ''): string =>
      `${line} HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${tenant.key ?? ''}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const send = async (...later: readonly string[]) => {
      const connection = await connectRaw(server.port);
      connection.socket.write([request('GET /sandboxpools'), ...later].join(''));
      await eventually(() => held === 1, 'the first one is under way');
      return connection;
    };
    const stop = async (): Promise<void> => {
      letGo();
      await server.stop();
    };
    return { server, path, request, send, stop };
  };

  it('no longer follows anything', async () => {
    const { server, path, request, send, stop } = await aSlowServer();
    const { operations } = server;
    const { socket } = await send(request(`GET ${path}/logs?follow=true`));
    await eventually(() => operations.open.followers === 1, 'the second one follows');
    socket.resetAndDestroy();
    await eventually(() => operations.open.followers === 0, 'nobody follows');
    await stop();
  });

  it('ends its commands', async () => {
    const { server, path, request, send, stop } = await aSlowServer();
    let isAborted: boolean | undefined;
    server.operations.driver.onExec = (_id, _request, signal) =>
      new Promise((_, reject) => {
        isAborted = false;
        signal.addEventListener('abort', () => {
          isAborted = true;
          reject(signal.reason as Error);
        });
      });
    const { socket } = await send(request(`POST ${path}/exec`, '{"command":"sleep"}'));
    await eventually(() => isAborted === false, 'the command runs');
    socket.resetAndDestroy();
    await eventually(() => isAborted === true, 'the command is ended');
    await stop();
  });

  it('holds no memory that others need', async () => {
    const answers = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 4 * OUTPUT.length,
      tenantPercent: 50,
    });
    const { server, path, request, send, stop } = await aSlowServer(answers);
    let ran = false;
    server.operations.driver.onExec = async () => {
      ran = true;
      return { stdout: OUTPUT };
    };
    const isFree = (): boolean => {
      const room = answers.room('another');
      try {
        room.hold(2 * OUTPUT.length);
        return true;
      } catch {
        return false;
      } finally {
        room.release();
      }
    };
    const { socket } = await send(request(`POST ${path}/exec`, '{"command":"x"}'));
    await eventually(() => ran && !isFree(), 'the second one has its answer');
    socket.resetAndDestroy();
    await eventually(isFree, 'there is room again');
    expect(server.log.filter(({ level }) => level === 'error')).to.deep.equal([]);
    await stop();
  });
});
