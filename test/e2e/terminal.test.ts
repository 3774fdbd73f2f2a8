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
import { claim, clear, run, stocked } from '../support/harness/on-a-daemon.ts';
import {
  initOf,
  processesBeside,
  withCommand,
  writtenBy,
} from '../support/harness/seen-from-the-host.ts';

const V1 = 'sandpool.terminal.v1';
const MIB = 2 ** 20;

describe('a terminal of a real daemon', function () {
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
    it('uses a token up with another sandbox, but not with other refusals, as the reference says', async () => {
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
  });

  describe('without a subprotocol', () => {
    it("runs a login shell of the sandbox's user, on a terminal, in the working folder", async () => {
      const terminal = await open();
      expect(
        await terminal.ask('id -un; pwd; echo $TERM; shopt -q login_shell && echo login'),
      ).to.equal('sandbox\n/home/sandbox\nxterm-256color\nlogin\n');
      expect(
        await terminal.ask('[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; echo through > /dev/tty'),
      ).to.equal('all\nthrough\n');
    });
  });

  describe('in transit', () => {
    it('keeps every byte, both ways', async () => {
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

    it('loses nothing of a flood with a stalled reader, and buffers little', async () => {
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
  });

  describe('at its end', () => {
    it('closes with 4004 when its sandbox dies or expires', async () => {
      const sandbox = await claim(client);
      const dying = await open({ protocols: [V1] }, sandbox);
      process.kill(initOf(daemon.dataDir, sandbox), 'SIGKILL');
      expect((await dying.closed).code).to.equal(4004);
      const other = await claim(client);
      const quiet = await open({}, other);
      await quiet.ask('true');
      await client.put(`/sandboxes/${other}/idle-timeout`, { idleTimeout: '1s' });
      expect((await quiet.closed).code).to.equal(4004);
    });

    it('kills its shell and its processes when its client hangs up or disappears', async () => {
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

    it('releases its slot: twice the limit of terminals can open and close', async () => {
      for (let round = 0; round < 2; round++) {
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

    it('closes with 1012 when the daemon stops, which ends its shell but not its sandbox', async () => {
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
