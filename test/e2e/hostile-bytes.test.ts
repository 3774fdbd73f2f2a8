import { expect } from 'chai';
import { TerminalUnderTest, tokenFor } from '../support/harness/a-terminal.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { Dice, hostileValue, mutated } from '../support/builders/hostile-values.ts';
import { connectRaw, type HttpClient } from '../support/harness/http-client.ts';
import { claim } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

describe('hostile bytes to a real daemon', function () {
  const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000_000);
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let id = '';

  before(async () => {
    console.info(`    HOSTILE_SEED=${seed}`);
    daemon = await DaemonUnderTest.start(line`--default-pool-replicas 4 --log-level warn`);
    client = daemon.client();
    id = await claim(client);
  });

  after(() => daemon.dispose());

  const serves = async (): Promise<boolean> => {
    const { status, json } = await client.post(`/sandboxes/${id}/exec`, { command: 'echo served' });
    return status === 200 && json.stdout === 'served\n';
  };

  afterEach(async () => {
    expect(await serves()).to.equal(true);
    expect(daemon.run.process.exitCode, daemon.run.stderr().slice(-2_000)).to.equal(null);
    expect(daemon.run.process.signalCode).to.equal(null);
    const bad = daemon.run
      .stderr()
      .split('\n')
      .filter(
        (printed) =>
          printed !== '' &&
          (!printed.startsWith('{') || /"level":"(error|fatal)"|unhandled|uncaught/i.test(printed)),
      );
    expect(bad).to.deep.equal([]);
  });

  it('in 200 connections of mutated requests and upgrades cause no harm', async () => {
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

  it('in 300 frames to a terminal harm that terminal at most', async () => {
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
