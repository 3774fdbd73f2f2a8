import { expect } from 'chai';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { silentLog } from '../../src/contracts/log.ts';
import type { RequestState } from '../../src/http/reply/context.ts';
import { notes, type Note } from '../../src/http/server/middleware.ts';

describe('notes of a request', () => {
  /** Answers one request, of which these notes are made; returns its text. */
  const answered = async (each: readonly Note[], errors: string[] = []): Promise<string> => {
    const app = new Koa<RequestState>();
    const log = {
      ...silentLog,
      error: (_: unknown, event: string) => {
        errors.push(event);
      },
    };
    app.use(notes(log, each));
    app.use(async (context) => {
      await Promise.resolve();
      context.body = 'done';
    });
    const handle = app.callback();
    const server = createServer((request, response) => void handle(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      return await (await fetch(`http://127.0.0.1:${port}/`)).text();
    } finally {
      server.close();
    }
  };

  it('are written once its answer is written, and before its client has read it', async () => {
    const seen: unknown[] = [];
    const text = await answered([
      ({ res, status }, tookMs) => {
        seen.push(res.writableEnded, status, tookMs >= 0);
      },
    ]);

    expect([text, ...seen]).to.deep.equal(['done', true, 200, true]);
  });

  it('do not affect others if one fails', async () => {
    const errors: string[] = [];
    const text = await answered(
      [
        () => {
          throw new Error('no note');
        },
      ],
      errors,
    );

    expect([text, errors]).to.deep.equal(['done', ['request-not-logged']]);
  });
});
