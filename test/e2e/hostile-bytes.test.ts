import { expect } from 'chai';
import { TerminalUnderTest, tokenFor } from '../support/harness/a-terminal.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { documentedOperations } from '../support/harness/documented-answers.ts';
import {
  contradiction,
  type GeneratedRequest,
  type Known,
  requestsTo,
} from '../support/builders/generated-requests.ts';
import { Dice, hostileValue, mutated } from '../support/builders/hostile-values.ts';
import { connectRaw, type HttpAnswer, type HttpClient } from '../support/harness/http-client.ts';
import { claim, poolStatus } from '../support/harness/on-a-daemon.ts';
import { runs } from '../support/harness/runs.ts';

/**
 * Of the real daemon; of its HTTP layer alone `test/http/hostile-requests.test.ts` asks 2,000 each.
 */
const REQUESTS_PER_ROUTE = runs(25);
const AT_ONCE = 8;
/** Refusals from 500 on. */
const SAID = ['UNAVAILABLE', 'FEATURE_DISABLED', 'CLUSTER_UNAVAILABLE'];
/** A claim may wait for five minutes: then its client gives it up. */
const PATIENCE_MS = 1_500;

const answerTo = async (
  client: HttpClient,
  { method, target, headers, raw }: GeneratedRequest,
): Promise<HttpAnswer | undefined> => {
  const mayWait = raw?.includes('waitTimeoutSeconds') === true;
  const signal = mayWait ? AbortSignal.timeout(PATIENCE_MS) : undefined;
  try {
    return await client.send(method, target, {
      headers,
      ...(raw === undefined ? {} : { raw }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) return undefined;
    throw error;
  }
};

describe('hostile bytes to the real daemon', function () {
  const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000_000);
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let admin: HttpClient;
  let id = '';

  before(async () => {
    console.info(`    HOSTILE_SEED=${seed}`);
    daemon = await DaemonUnderTest.start([
      '--default-pool-replicas',
      '4',
      '--quotas-replicas',
      '12',
      '--quotas-pools',
      '4',
      '--log-level',
      'warn',
    ]);
    client = daemon.client();
    admin = daemon.client(daemon.adminKey);
  });

  after(() => daemon.dispose());

  /** What a round took away from the next is there again. */
  beforeEach(async () => {
    const { json: running } = await client.get('/sandboxes?phase=Running&limit=1000');
    for (const { sandboxId } of running.items ?? [])
      if (sandboxId !== id) await client.delete(`/sandboxes/${String(sandboxId)}`);
    for (const { name } of (await client.get('/sandboxpools')).json.items ?? [])
      if (name !== 'default' && name !== 'target')
        await client.delete(`/sandboxpools/${String(name)}?force=true`);
    // One of them may have deleted either.
    await hasPool('default', 4);
    await hasPool('target', 1);
    if (id === '' || !(await serves())) {
      if (id !== '') await client.delete(`/sandboxes/${id}`);
      id = await claim(client);
      expect(await serves()).to.equal(true);
    }
    // Four, if a request deleted the pool that the sandbox was claimed from.
    await within('3 idle in default', async () =>
      Number((await poolStatus(client))['idleReplicas']) >= 3 ? true : undefined,
    );
  });
  const hasPool = (name: string, replicas: number): Promise<unknown> =>
    within(
      `the pool ${name}`,
      async () =>
        (await client.put(`/sandboxpools/${name}`, { replicas })).status === 200 ||
        (await client.post('/sandboxpools', { name, templateName: 'default', replicas })).status ===
          201 ||
        undefined,
    );
  const serves = async (): Promise<boolean> => {
    const { status, json } = await client.post(`/sandboxes/${id}/exec`, { command: 'echo served' });
    return status === 200 && json.stdout === 'served\n';
  };

  afterEach(() => {
    expect(daemon.run.process.exitCode, daemon.run.stderr().slice(-2_000)).to.equal(null);
    expect(daemon.run.process.signalCode).to.equal(null);
    const bad = daemon.run
      .stderr()
      .split('\n')
      .filter(
        (line) =>
          line !== '' &&
          (!line.startsWith('{') || /"level":"(error|fatal)"|unhandled|uncaught/i.test(line)),
      );
    expect(bad).to.deep.equal([]);
  });

  for (const [place, operation] of documentedOperations.entries()) {
    it(`${REQUESTS_PER_ROUTE} to ${operation.method} ${operation.path} are answered, never by a fault`, async () => {
      const known: Known = {
        path: { sandboxId: [id], name: ['target', 'default/nothing'] },
        fields: { poolName: ['default', 'target'], templateName: ['default'] },
      };
      const requests = requestsTo(operation, known, {
        seed: seed + place,
        count: REQUESTS_PER_ROUTE,
      });
      let next = 0;
      let answered = 0;
      const worker = async (): Promise<void> => {
        for (let request = requests[next++]; request; request = requests[next++]) {
          const as = operation.path.startsWith('/admin/') || next % 5 === 0 ? admin : client;
          const answer = await answerTo(as, request);
          if (!answer) continue;
          answered += 1;
          const context = `HOSTILE_SEED=${seed}, ${request.method} ${request.target}: ${answer.status} ${answer.text.slice(0, 300)}`;
          expect(
            answer.status < 500 || SAID.includes(answer.json.errorCode ?? ''),
            context,
          ).to.equal(true);
          expect(contradiction(operation, request, answer), context).to.equal(undefined);
        }
      };
      await Promise.all(Array.from({ length: AT_ONCE }, worker));
      expect(answered).to.be.above(REQUESTS_PER_ROUTE / 3);
    });
  }

  it('200 connections of mutated requests and upgrades end without harm', async () => {
    const dice = new Dice(seed + 1_000);
    const token = await tokenFor(client, id);
    const upgrade = Buffer.from(
      `GET /ws/clusters/local/sandboxes/${id}/terminal?token=${token} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`,
    );
    const post = Buffer.from(
      `POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${client.key ?? ''}\r\nContent-Type: application/json\r\nContent-Length: 22\r\n\r\n{"poolName":"default"}`,
    );
    for (let n = 0; n < 200; n += 1) {
      const connection = await connectRaw(daemon.run.port);
      connection.socket.end(
        mutated(
          dice,
          dice.pick([
            upgrade,
            post,
            Buffer.concat([post, upgrade]),
            Buffer.concat([upgrade, post]),
          ]),
        ),
      );
      const text = await connection.closed();
      for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d+)/gm))
        expect(
          Number(status) < 500 || Number(status) === 503,
          `HOSTILE_SEED=${seed}: ${text}`,
        ).to.equal(true);
    }
  });

  it('300 hostile frames to a terminal harm it alone, if at all', async () => {
    const dice = new Dice(seed + 2_000);
    for (let round = 0; round < 3; round += 1) {
      const terminal = await TerminalUnderTest.open(daemon, client, id, {
        protocols: ['sandpool.terminal.v1'],
      });
      for (let n = 0; n < 100 && terminal.socket.readyState === terminal.socket.OPEN; n += 1) {
        const frame = Buffer.from(
          JSON.stringify(
            dice.chance(0.5)
              ? {
                  type: dice.pick(['resize', 'signal', 'x']),
                  cols: hostileValue(dice),
                  rows: hostileValue(dice),
                  name: hostileValue(dice),
                }
              : hostileValue(dice),
          ),
        );
        if (dice.chance(0.8)) terminal.socket.send(frame.toString());
        else terminal.socket.send(mutated(dice, frame));
        if (dice.chance(0.05)) terminal.socket.ping(Buffer.alloc(dice.below(126)));
      }
      terminal.socket.close(dice.pick([1000, 1001, 3000, 4999]));
      await terminal.closed;
    }
  });
});
