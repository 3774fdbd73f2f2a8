import { createHash, randomInt } from 'node:crypto';
import { expect } from 'chai';
import { v7 } from 'uuid';
import { InstanceGone, type Terminal } from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { Cluster } from '../../local-cluster/control-plane/cluster.ts';
import type { PodProgram } from '../support/builders/a-pod.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { rejection } from '../support/harness/rejection.ts';

const MB = 1 << 20;
const ALL = 50_000_000;

/**
 * What a terminal in a Pod does, whoever runs it; `program` is what the Pod runs, in an image with
 * a shell.
 */
export const podTerminalSuite = (
  title: string,
  controlPlane: () => Cluster,
  program?: PodProgram,
): void => {
  const ofProgram = program ? { program } : {};

  describe(title, function () {
    let under: PodStreamsUnderTest;
    let pod: PodTarget;
    /** Nobody else's: processes of other suites are seen, too. */
    const [stays, cut] = Array.from(
      { length: 2 },
      () => `sleep ${randomInt(1_000_000, 100_000_000)}`,
    ) as [string, string];

    before(async () => {
      under = await PodStreamsUnderTest.start(controlPlane(), ofProgram);
      pod = await under.pod('main');
    });
    after(() => under.close());

    const opened = (script: string, streams = under.streams): Promise<Terminal> =>
      streams.attach(pod, { argv: ['sh', '-c', script], cols: 91, rows: 33 });

    /** All that it printed so far. */
    const read = (terminal: Terminal): (() => string) => {
      let text = '';
      terminal.stream.on('data', (chunk: Buffer) => {
        text += String(chunk);
      });
      return () => text;
    };

    it('has the requested size, carries bytes both ways, and ends with the exit code after the output', async () => {
      const terminal = await opened(
        'read line; echo "got $line"; for n in $(seq 100); do [ "$(stty size 2>/dev/null)" != "33 91" ] || break; sleep 0.05; done; stty size; exit 5',
      );
      const text = read(terminal);
      terminal.stream.write('typed\r');
      expect(await terminal.exit).to.equal(5);
      expect(text()).to.equal('typed\r\ngot typed\r\n33 91\r\n');
    });

    it('has the requested variables, shows none of them, and accepts input at once', async () => {
      const env = {
        PLANTED: 'canary\n\u0003\u0004\u0011\u0016\u007f ä%s\\0101',
        EMPTY: '',
        LONG: 'x'.repeat(60_000),
      };
      const script = 'printf "%s" "$PLANTED$EMPTY$LONG" | sha256sum; read line; echo "got $line"';
      const terminal = await under.streams.attach(pod, {
        argv: ['sh', '-c', script],
        env,
        cols: 80,
        rows: 24,
      });
      const text = read(terminal);
      const sum = createHash('sha256').update(Object.values(env).join('')).digest('hex');
      await eventually(() => text().includes(sum), 'it has them');
      terminal.stream.write('typed\r');
      expect(await terminal.exit).to.equal(0);
      expect(text()).to.equal(`${sum}  -\r\ntyped\r\ngot typed\r\n`);
    });

    it('resizes its terminal', async () => {
      const terminal = await opened('while read line; do stty size; done');
      const text = read(terminal);
      for (let cols = 10; cols <= 100; cols += 1) terminal.resize(cols, 40);
      await eventually(() => {
        terminal.stream.write('\r');
        return text().includes('40 100\r\n');
      }, 'the newest size is in force');
      terminal.close();
    });

    it('delivers signals in order', async () => {
      const terminal = await opened(
        'trap "echo usr1" USR1; trap "echo usr2; exit 3" USR2; echo ready; while :; do sleep 0.1; done',
      );
      const text = read(terminal);
      await eventually(() => text().includes('ready'), 'it waits for signals');
      terminal.signal('USR1');
      terminal.signal('USR2');
      expect(await terminal.exit).to.equal(3);
      expect(text()).to.match(/usr1\r\n[^]*usr2\r\n$/);
      expect(() => terminal.signal('NONE')).to.throw('NONE');
    });

    it('hangs up when it is closed, and kills remaining processes', async () => {
      const terminal = await opened(`trap "" HUP; ${stays}; ${stays}`);
      terminal.stream.resume();
      await eventually(() => under.runs(pod, stays), 'it runs');
      terminal.close();
      terminal.close();
      expect(await terminal.exit).to.satisfy((code: number | null) => code === null || code >= 128);
      await eventually(async () => !(await under.runs(pod, stays)), 'it is gone');
    });

    it('returns null when the connection breaks, and kills its processes', async () => {
      const terminal = await opened(cut);
      terminal.stream.resume();
      await eventually(() => under.runs(pod, cut), 'it runs');
      under.proxy.cut();
      expect(await terminal.exit).to.equal(null);
      expect(terminal.stream.destroyed).to.equal(true);
      await eventually(async () => !(await under.runs(pod, cut)), 'it is gone');
    });

    it('detects a silently hanging connection', async () => {
      const pinging = await PodStreamsUnderTest.start(controlPlane(), { pingEveryMs: 1_500 });
      const terminal = await opened('sleep 968', pinging.streams);
      terminal.stream.resume();
      terminal.stream.write('x');
      pinging.proxy.state = 'hold';
      expect(await terminal.exit).to.equal(null);
      await pinging.close();
    });

    it('waits for a slow reader: 50 MB use no memory and lose no byte', async () => {
      const direct = await PodStreamsUnderTest.start(controlPlane(), {
        ...ofProgram,
        direct: true,
        pingEveryMs: 1_300, // three of them are less than it rests
      });
      try {
        // It stays until it is told that all was read: of an end right behind megabytes in flight kwok may
        // lose the last.
        const script = `stty -opost -echo; head -c ${ALL} /dev/zero | tr "\\0" x; read line; exit 7`;
        const terminal = await direct.streams.attach(await direct.pod('main'), {
          argv: ['sh', '-c', script],
          cols: 80,
          rows: 24,
        });
        // At once: whatever flows before the next turn would have nobody to read it.
        const begun = await new Promise<Buffer>((resolve) => {
          terminal.stream.once('data', (chunk: Buffer) => {
            terminal.stream.pause();
            resolve(chunk);
          });
        });
        const before = process.memoryUsage();
        // Longer than a link may be silent: a reader that rests is not taken for a dead peer.
        const restedSince = performance.now();
        await eventually(() => performance.now() - restedSince > 4_000, 'it rested');
        const after = process.memoryUsage();
        expect(
          after.external + after.arrayBuffers - before.external - before.arrayBuffers,
        ).to.be.lessThan(4 * MB);

        let size = begun.length;
        let isAllX = begun.every((byte) => byte === 0x78);
        terminal.stream
          .on('data', (chunk: Buffer) => {
            size += chunk.length;
            isAllX &&= chunk[0] === 0x78 && chunk.equals(Buffer.alloc(chunk.length, 'x'));
          })
          .resume();
        await eventually(() => size >= ALL, 'all of it arrived');
        terminal.stream.write('\n');
        expect(await terminal.exit).to.equal(7);
        expect(isAllX).to.equal(true);
        expect(size).to.equal(ALL);
      } finally {
        await direct.close();
      }
    });

    it('waits for a shell that does not read, and counts as alive', async () => {
      const direct = await PodStreamsUnderTest.start(controlPlane(), {
        ...ofProgram,
        direct: true,
        pingEveryMs: 1_300, // three of them are less than it rests
      });
      const terminal = await direct.streams.attach(await direct.pod('main'), {
        argv: ['sh', '-c', 'stty raw -echo; echo raw; sleep 4; head -c 6000000 | wc -c'],
        cols: 80,
        rows: 24,
      });
      const text = read(terminal);
      let left = 6_000_000;
      let waited = false;
      const feed = (): void => {
        while (left > 0) {
          const size = Math.min(left, 64 << 10);
          left -= size;
          if (!terminal.stream.write(Buffer.alloc(size, 'y'))) {
            waited = true;
            terminal.stream.once('drain', feed);
            return;
          }
        }
      };
      await eventually(() => text().includes('raw'), 'the terminal takes bytes as they are');
      feed();
      await eventually(() => text().includes('6000000'), 'all of it arrived');
      expect(waited).to.equal(true);
      expect(await terminal.exit).to.equal(0);
      await direct.close();
    });

    it('rejects with InstanceGone if the Pod is gone', async () => {
      expect(
        await rejection(
          under.streams.attach({ ...pod, name: v7() }, { argv: ['cat'], cols: 80, rows: 24 }),
        ),
      ).to.be.instanceOf(InstanceGone);
    });
  });
};
