import { expect } from 'chai';
import { createHash, randomBytes } from 'node:crypto';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import {
  TerminalUnderTest,
  tokenFor,
  UpgradeRefused,
  type TerminalRequest,
} from '../support/harness/a-terminal.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { processProbe } from '../support/harness/process-probe.ts';
import { claim, clear, giveBack, run, stocked } from '../support/harness/on-a-daemon.ts';
import {
  initOf,
  processesBeside,
  withCommand,
  writtenBy,
} from '../support/harness/seen-from-the-host.ts';

const V1 = 'sandpool.terminal.v1';
const MIB = 2 ** 20;
const BAD_TOKEN = { error: 'invalid or expired token', errorCode: 'INVALID_TOKEN' };

describe('a terminal of the real daemon', function () {
  const probe = processProbe();
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let id: string;

  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '3'], undefined, {
      env: probe.env,
    });
    client = daemon.client();
    await stocked(client, 3);
  });

  beforeEach(async () => {
    id = await claim(client);
  });

  afterEach(() => clear(client));

  after(async () => {
    await daemon.dispose();
    probe.remove();
  });

  const open = (spec: TerminalRequest = {}, sandbox = id): Promise<TerminalUnderTest> =>
    TerminalUnderTest.open(daemon, client, sandbox, spec);
  const framed = (spec: TerminalRequest = {}): Promise<TerminalUnderTest> =>
    open({ protocols: [V1], ...spec });
  const refusal = (spec: TerminalRequest, sandbox = id): Promise<UpgradeRefused> =>
    open(spec, sandbox).then(
      () => {
        throw new Error('the upgrade was not refused');
      },
      (error: unknown) => {
        if (error instanceof UpgradeRefused) return error;
        throw error;
      },
    );
  const inside = (words: string): number | undefined =>
    withCommand(processesBeside(initOf(daemon.dataDir, id)), words);

  describe('its upgrade', () => {
    it('takes the token in the URL, or as a subprotocol with or without the framed one', async () => {
      expect((await open()).socket.protocol).to.equal('');
      const token = await tokenFor(client, id);
      expect(
        (await open({ token, tokenInUrl: false, protocols: [V1, `sandpool.token.${token}`] }))
          .socket.protocol,
      ).to.equal(V1);
      const second = await tokenFor(client, id);
      const bare = await open({
        token: second,
        tokenInUrl: false,
        protocols: [`sandpool.token.${second}`],
      });
      bare.type('echo by $((40 + 2))\n');
      await bare.shows('by 42');
    });

    it('is 401 with one body for every fault of the token', async () => {
      const other = await claim(client);
      const used = await tokenFor(client, id);
      await open({ token: used });
      const gone = await claim(client);
      const tokenOfGone = await tokenFor(client, gone);
      await giveBack(client, gone);
      for (const [what, sandbox, token] of [
        ['used', id, used],
        ["another sandbox's", id, await tokenFor(client, other)],
        ['unknown', id, 'x'.repeat(43)],
        ['empty', id, ''],
        ['an API key', id, daemon.tenantKey],
        ['of no sandbox', 'nonsense', await tokenFor(client, id)],
      ] as const) {
        const { status, body } = await refusal({ token }, sandbox);
        expect(status, what).to.equal(401);
        expect(body, what).to.deep.equal(BAD_TOKEN);
      }
      expect((await refusal({ token: tokenOfGone }, gone)).status).to.be.oneOf([401, 409]);
      expect((await refusal({ token: 'x', tokenInUrl: false })).status).to.equal(401);
    });

    it('uses a token up where it was brought to another sandbox, and by no other refusal, as docs/api.md says', async () => {
      const [token, other] = [await tokenFor(client, id), await claim(client)];
      const elsewhere = { token, cluster: 'elsewhere' };
      const foreign = { token, options: { origin: 'https://evil.example' } };
      expect((await refusal(elsewhere)).status).to.equal(404);
      expect((await refusal(foreign)).status).to.equal(403);
      await (await open({ token })).hangUp();

      const brought = await tokenFor(client, id);
      expect((await refusal({ token: brought }, other)).status).to.equal(401);
      expect((await refusal({ token: brought })).status).to.equal(401);
    });

    it("is 403 for a page of another origin, and open to one of the daemon's own", async () => {
      const { status, body } = await refusal({ options: { origin: 'https://evil.example' } });
      expect(status).to.equal(403);
      expect(body).to.include({ errorCode: 'FORBIDDEN' });
      await (await open({ options: { origin: daemon.run.address } })).hangUp();
    });

    it('is 409 once the sandbox is not Running, and 404 for another cluster', async () => {
      const token = await tokenFor(client, id);
      await client.delete(`/sandboxes/${id}`);
      const { status } = await refusal({ token });
      expect(status).to.be.oneOf([409, 401]);
      const other = await claim(client);
      const elsewhere = await refusal(
        { cluster: 'elsewhere', token: await tokenFor(client, other) },
        other,
      );
      expect(elsewhere.status).to.equal(404);
      expect(elsewhere.body).to.include({ errorCode: 'CLUSTER_NOT_FOUND' });
    });

    it('is 429 for the seventeenth of a sandbox, until one is closed', async () => {
      const terminals = await Promise.all(Array.from({ length: 16 }, () => open()));
      const token = await tokenFor(client, id);
      const { status, body, headers } = await refusal({ token });
      expect(status).to.equal(429);
      expect(body).to.include({ errorCode: 'TOO_MANY_TERMINALS' });
      expect(headers['retry-after']).to.match(/^[1-9]\d*$/);
      await Promise.all(
        terminals.map(async (terminal, at) =>
          expect((await terminal.ask(`echo ${at}`)).trim()).to.equal(String(at)),
        ),
      );
      const other = await claim(client);
      await (await open({}, other)).hangUp();
      await terminals[0]?.hangUp();
      const again = await within('there is room again, and the token is still good', () =>
        open({ token }).catch(() => undefined),
      );
      await again.hangUp();
    });
  });

  describe('without a subprotocol', () => {
    it('is 80 by 24 where nothing is said, else as the URL says', async () => {
      expect((await (await open()).ask('stty size')).trim()).to.equal('24 80');
      expect((await (await open({ cols: 211, rows: 53 })).ask('stty size')).trim()).to.equal(
        '53 211',
      );
      for (const spec of [{ cols: 0 }, { rows: 1_001 }, { cols: 1.5 }])
        expect((await refusal(spec)).status, JSON.stringify(spec)).to.equal(400);
    });

    it('takes text and binary frames as input alike, and answers in binary', async () => {
      const terminal = await open();
      terminal.socket.send('echo text $((1 + 1))\n');
      await terminal.shows('text 2');
      terminal.type('echo binary $((2 + 2))\n');
      await terminal.shows('binary 4');
      terminal.socket.send('{"type":"resize","cols":5,"rows":5}\n');
      await terminal.shows('command not found');
      expect(terminal.frames).to.deep.equal([]);
    });

    it("is a login shell of the sandbox's user, on a terminal, in the working folder", async () => {
      const terminal = await open();
      expect(
        await terminal.ask('id -un; pwd; echo $TERM; shopt -q login_shell && echo login'),
      ).to.equal('sandbox\n/home/sandbox\nxterm-256color\nlogin\n');
      expect(
        await terminal.ask('[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; echo through > /dev/tty'),
      ).to.equal('all\nthrough\n');
    });

    it('is closed with 1000 when its shell ends', async () => {
      const terminal = await open();
      terminal.type('exit 5\n');
      expect((await terminal.closed).code).to.equal(1000);
      expect(terminal.frames).to.deep.equal([]);
    });
  });

  describe('with sandpool.terminal.v1', () => {
    it('follows resize frames, and tells the program in it', async () => {
      const terminal = await framed({ cols: 90, rows: 30 });
      expect((await terminal.ask('stty size')).trim()).to.equal('30 90');
      terminal.type(
        `sh -c 'trap "stty size; echo resized" WINCH; echo ready $((1 + 1)); while :; do sleep 0.05; done'\n`,
      );
      await terminal.shows('ready 2');
      terminal.control({ type: 'resize', cols: 133, rows: 44 });
      await terminal.shows(/44 133\r\nresized/);
    });

    it('passes signals on to what runs in the foreground', async () => {
      const terminal = await framed();
      for (const [name, code] of [
        ['INT', 130],
        ['TERM', 143],
        ['KILL', 137],
        ['QUIT', 131],
        ['USR1', 138],
      ] as const) {
        terminal.type('sleep 4501\n');
        await within('it runs', () => inside('sleep 4501'));
        terminal.control({ type: 'signal', name });
        await within(`${name} ends it`, () => inside('sleep 4501') === undefined || undefined);
        terminal.type('echo "gave $?"\n');
        await terminal.shows(`gave ${code}`);
      }
      expect((await terminal.ask('echo still here')).trim()).to.equal('still here');
    });

    it('tells of the exit code in a frame, then closes with 1000', async () => {
      for (const [command, exitCode] of [
        ['exit 7', 7],
        ['exit', 0],
        ['kill -9 $$', 137],
      ] as const) {
        const terminal = await framed();
        terminal.type(`${command}\n`);
        expect((await terminal.closed).code, command).to.equal(1000);
        expect(terminal.frames).to.deep.equal([{ type: 'exit', exitCode }]);
      }
    });

    it("answers a frame that it can't read with an error, and goes on", async () => {
      const terminal = await framed();
      const bad = [
        'nonsense',
        '[]',
        '{}',
        '{"type":"resize","cols":0,"rows":5}',
        '{"type":"resize","cols":"80","rows":24}',
        '{"type":"signal","name":"SEGV"}',
        '{"type":"signal"}',
        '{"type":"exit"}',
      ];
      for (const text of bad) terminal.socket.send(text);
      await within('an error for each', () => terminal.frames.length === bad.length || undefined);
      for (const frame of terminal.frames) {
        expect(frame).to.have.all.keys('type', 'error');
        expect(frame).to.include({ type: 'error' });
      }
      expect((await terminal.ask('stty size')).trim()).to.equal('24 80');
    });
  });

  describe('as a way for bytes', () => {
    it('keeps every byte there is, both ways', async () => {
      const terminal = await framed();
      await terminal.ask('stty raw -echo');
      terminal.type('head -c 256 | od -An -v -tu1 -w256 | tr -d "\\n"; printf done\n');
      const all = Buffer.from(Array.from({ length: 256 }, (_, at) => at));
      await within('head runs', () => inside('head -c 256'));
      terminal.socket.send(all);
      const [shown = ''] = (await terminal.shows('255done')).split('done');
      expect(shown.match(/\d+/g)?.slice(-256).map(Number)).to.deep.equal([...all]);
      const from = terminal.output.length;
      terminal.type(
        '\rawk \'BEGIN { for (i = 0; i < 256; i++) printf "%c", i }\' | LC_ALL=C cat; printf "\\nover\\n"\r',
      );
      await terminal.shows('over');
      expect(terminal.output.slice(from))
        .to.include('ABCDEFGHIJ')
        .and.to.include('\u0000\u0001\u0002\u0003');
    });

    it('loses nothing of a long paste into a program that reads late', async () => {
      const terminal = await framed();
      await terminal.ask('stty raw -echo');
      const paste = randomBytes(1_500_000);
      terminal.type(`sleep 1; head -c ${paste.length} | sha256sum\n`);
      await within(
        'it waits, or has begun to read',
        () => inside('sleep 1') ?? inside(`head -c ${paste.length}`),
      );
      for (let at = 0; at < paste.length; at += 30_000)
        terminal.socket.send(paste.subarray(at, at + 30_000));
      await terminal.shows(createHash('sha256').update(paste).digest('hex'));
    });

    it('loses nothing of a flood while the reader stalls, and holds little of it', async () => {
      const terminal = await framed();
      const lines = 2_000_000;
      const daemonPid = daemon.run.process.pid ?? 0;
      const before = (await probe.of(daemonPid)).heldBytes;
      terminal.socket.pause();
      terminal.type(`stty -opost; seq 1 ${lines}; exit\n`);
      const seq = await within('it floods', () => inside('seq 1'));
      const other = await claim(client);
      let most = 0;
      for (let round = 0; round < 20; round++) {
        expect((await run(client, other, 'sleep 0.05; echo lives')).stdout).to.equal('lives\n');
        most = Math.max(most, (await probe.of(daemonPid)).heldBytes);
      }
      expect((most - before) / MIB, 'MiB held by the daemon').to.be.below(8);
      // Of more than 14: it waits for its reader.
      expect(writtenBy(seq) / MIB, 'MiB on the way, also in the kernel').to.be.below(12);
      terminal.socket.resume();
      expect((await terminal.closed).code).to.equal(1000);
      expect(terminal.frames).to.deep.equal([{ type: 'exit', exitCode: 0 }]);
      const numbers = terminal.output.slice(terminal.output.search(/1\n2\n3\n/)).split('\n');
      expect(
        numbers.slice(0, lines).every((text, at) => Number(text) === at + 1),
        'each line, in order',
      ).to.equal(true);
    });

    it('closes with 1009 on a message of more than 64 KiB', async () => {
      const terminal = await framed();
      terminal.socket.send(Buffer.alloc(65_536, 0x20));
      terminal.type('\n');
      expect((await terminal.ask('echo took it')).trim()).to.include('took it');
      terminal.socket.send(Buffer.alloc(65_537, 0x20));
      expect((await terminal.closed).code).to.equal(1009);
    });
  });

  describe('at its end', () => {
    it('is closed with 4004 when its sandbox is deleted', async () => {
      const terminals = [await open(), await framed()];
      await client.delete(`/sandboxes/${id}`);
      for (const terminal of terminals) expect((await terminal.closed).code).to.equal(4004);
    });

    it('is closed with 4004 when its sandbox dies, or is out of time', async () => {
      const dying = await framed();
      dying.type('kill -9 2\n');
      expect((await dying.closed).code).to.equal(4004);
      const other = await claim(client);
      const quiet = await open({}, other);
      await quiet.ask('true');
      await client.put(`/sandboxes/${other}/idle-timeout`, { idleTimeout: '1s' });
      expect((await quiet.closed).code).to.equal(4004);
    });

    it('takes its shell and what runs in it along, when its client hangs up or vanishes', async () => {
      for (const leave of [
        (terminal: TerminalUnderTest) => terminal.socket.close(),
        (terminal: TerminalUnderTest) => terminal.socket.terminate(),
      ]) {
        const terminal = await open();
        terminal.type('sleep 4601 & sleep 4602\n');
        await within('both run', () => (inside('sleep 4601') && inside('sleep 4602')) || undefined);
        leave(terminal);
        await within(
          'nothing of it runs',
          () =>
            (inside('bash') ?? inside('sleep 4601') ?? inside('sleep 4602')) === undefined ||
            undefined,
        );
      }
    });

    it('leaves no terminal counted: 8 times 16 open and close', async () => {
      for (let round = 0; round < 8; round++) {
        const terminals = await Promise.all(
          Array.from({ length: 16 }, () =>
            within('room', () =>
              open().catch((error: unknown) => {
                if (error instanceof UpgradeRefused && error.status === 429) return undefined;
                throw error;
              }),
            ),
          ),
        );
        await Promise.all(terminals.map((terminal) => terminal.hangUp()));
      }
      await within('no shell is left', () => inside('bash') === undefined || undefined);
    });

    it('is closed with 1012 when the daemon stops; its shell ends, its sandbox does not', async () => {
      const terminals = [await open(), await framed()];
      terminals[0]?.type('sleep 4701\n');
      await within('it runs', () => inside('sleep 4701'));
      const stopped = daemon.stop();
      for (const terminal of terminals) expect((await terminal.closed).code).to.equal(1012);
      expect(await stopped).to.equal(0);
      await within(
        'no shell is left',
        () => (inside('bash') ?? inside('sleep 4701')) === undefined || undefined,
      );
      await daemon.start();
      client = daemon.client();
      expect((await (await open()).ask('echo here again')).trim()).to.equal('here again');
    });
  });
});
