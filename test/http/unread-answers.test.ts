import { expect } from 'chai';
import type { Socket } from 'node:net';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { connectRaw, parseRaw } from '../support/harness/http-client.ts';
import type { AdmissionBounds } from '../../src/http/limits/bounds.ts';
import { AnswerBudget } from '../../src/actors/sandbox/commands/answer-budget.ts';
import { aServer } from './a-server.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';

/**
 * Each NUL of a command's output is six characters of the answer: more than the kernel takes where
 * nobody reads.
 */
const STREAM = Buffer.alloc(1_048_576);
const LARGE = 2 * 6 * STREAM.length;
/** More than the kernel has to be rid of before it takes more. */
const STEP = 524_288;

/** Without the lines between the pieces of a chunked answer. */
const dechunked = (text: string): string =>
  text.slice(text.indexOf('\r\n\r\n') + 4).replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n/g, '');

/** Reads a step more, and pauses again. */
const readsOn = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const { bytesRead } = socket;
    const read = (): void => {
      if (socket.bytesRead - bytesRead < STEP) return;
      socket.off('data', read).pause();
      resolve();
    };
    socket.on('data', read).resume();
  });

const isRefused = (answers: AnswerBudget, bytes: number): boolean => {
  const room = answers.room('another');
  try {
    room.hold(bytes);
    return false;
  } catch {
    return true;
  } finally {
    room.release();
  }
};

describe('an unread answer', () => {
  const talkative = async (limits: Partial<AdmissionBounds>, answers?: AnswerBudget) => {
    const server = await aServer({ limits, answers });
    await server.makeShells(3);
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'shells' });
    server.operations.driver.onExec = async () => ({ stdout: STREAM, stderr: STREAM });
    const body = JSON.stringify({ command: 'x' });
    const ask =
      `POST /sandboxes/${json.sandbox!.sandboxId!}/exec HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    /** Asks, and reads nothing of the answer. */
    const deaf = async () => {
      const connection = await connectRaw(server.port);
      connection.socket.pause();
      connection.socket.write(ask);
      return connection;
    };
    const cuts = () =>
      server.log
        .filter(({ event }) => event === 'unread-answer-cut')
        .map(({ fields }) => fields.why);
    return { server, ask, deaf, cuts };
  };

  it('is closed once nothing of it was read for a while', async () => {
    const { server, deaf, cuts } = await talkative({ answerStallMs: 200 });
    const connection = await deaf();
    await eventually(() => cuts().length > 0, 'the answer is cut');
    connection.socket.resume();
    expect((await connection.closed()).length).to.be.below(LARGE);
    expect(cuts()).to.deep.equal(['stalled']);
    await server.stop();
  });

  it('is never closed for another: an answer without room is refused, for its own tenant only', async () => {
    const answers = new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 3 * LARGE,
      tenantPercent: 50,
    });
    const { server, deaf, cuts, ask } = await talkative({ answerStallMs: NEVER_COMES_MS }, answers);
    const connection = await deaf();
    await eventually(
      () =>
        server.log.filter(({ fields }) => fields.path?.toString().endsWith('/exec')).length === 1,
      'the answer waits',
    );

    const refused = await connectRaw(server.port);
    refused.socket.write(ask);
    await eventually(() => refused.received().includes('RATE_LIMITED'), 'it is refused');
    expect(parseRaw(refused.received())).to.deep.include({ status: 429 });
    expect((await server.stranger.get('/sandboxpools')).status).to.equal(200);

    connection.socket.resume();
    await eventually(() => connection.received().endsWith('\r\n0\r\n\r\n'), 'the whole answer');
    const body = /\{.*\}/s.exec(dechunked(connection.received()))?.[0] ?? '';
    expect(JSON.parse(body)).to.include({ stdout: STREAM.toString(), stderr: STREAM.toString() });
    await eventually(() => !isRefused(answers, LARGE), 'its room is free again');
    expect(cuts()).to.deep.equal([]);
    for (const { socket } of [connection, refused]) socket.destroy();
    await server.stop();
  });

  it('survives late but steady reads, and so does the next one on its connection', async () => {
    // All of it takes longer than the stall that is let pass, no step of it nearly as long.
    const { server, ask, deaf, cuts } = await talkative({ answerStallMs: 5_000 });
    const connection = await deaf();
    for (let at = 0; at < 6; at += 1) {
      await new Promise((resolve) => {
        setTimeout(resolve, 1_000);
      });
      await readsOn(connection.socket);
    }
    connection.socket.resume();
    await eventually(() => connection.received().length > LARGE, 'the whole answer');
    expect(parseRaw(connection.received()).status).to.equal(200);
    server.operations.driver.onExec = () =>
      new Promise((resolve) => {
        setTimeout(() => resolve({ exitCode: 7 }), 6_000);
      });
    connection.socket.write(ask);
    await eventually(() => connection.received().includes('"exitCode":7'), 'the next answer');
    expect(cuts()).to.deep.equal([]);
    connection.socket.destroy();
    await server.stop();
  });
});
