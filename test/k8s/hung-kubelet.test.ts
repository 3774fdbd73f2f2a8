import { expect } from 'chai';
import { PortUnreachable } from '../../src/contracts/sandbox-driver.ts';
import { refusalOf } from '../../src/http/reply/error-table.ts';
import { NodeSilent } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aFakePod, type FakePod } from './a-fake-pod-server.ts';

const NEVER = new AbortController().signal;
const COMMAND = { argv: ['true'], timeoutMs: 30_000, outputLimit: 100 };
const TERMINAL = { argv: ['sh'], cols: 80, rows: 24 };

describe('a hanging kubelet behind a working API server', () => {
  let under: FakePod;
  let silent: string[];
  /** `openWithinMs`: long where a way opens. */
  const aPod = async (openWithinMs: number): Promise<void> => {
    under = await aFakePod(() => undefined, { openWithinMs, answerWithinMs: 1_000 });
    silent = [];
    under.streams.whenSilent((node) => {
      silent.push(node);
    });
  };
  beforeEach(async () => {
    await aPod(1_000);
    under.isHung = true;
  });
  afterEach(() => under.close());

  const pod = (): FakePod['pod'] => ({ ...under.pod, node: 'n1' });

  for (const [way, open] of [
    ['a command', () => under.streams.exec(pod(), COMMAND, NEVER)],
    ['a terminal', () => under.streams.attach(pod(), TERMINAL)],
    ['a connection', () => under.streams.dial(pod(), 7_000, NEVER)],
  ] as const) {
    it(`makes its node count as silent in ${way}, with a retryable error`, async () => {
      const failure = await rejection(open());
      expect(failure).to.be.instanceOf(NodeSilent);
      expect(refusalOf(failure)).to.deep.include({ code: 'UNAVAILABLE', retryAfter: 1 });
      expect(silent).to.deep.equal(['n1']);
    });
  }

  it('makes its node count as silent by a command with a shorter timeout', async () => {
    await rejection(under.streams.exec(pod(), { ...COMMAND, timeoutMs: 1 }, NEVER));
    expect(silent).to.deep.equal([]);
    await eventually(() => silent.length > 0, 'it is told');
  });

  it('makes its node count as silent by a command that its client cancelled', async () => {
    const leaving = new AbortController();
    const command = rejection(under.streams.exec(pod(), COMMAND, leaving.signal));
    await eventually(() => under.ways > 0, 'it is on its way');
    leaving.abort(new Error('left'));
    expect(String(await command)).to.contain('left');
    await eventually(() => silent.length > 0, 'it is told');
  });

  it('makes its node count as silent by an open link, too', async () => {
    await under.close();
    await aPod(30_000);
    const connection = await under.streams.dial(pod(), 7_000, NEVER);
    expect(await rejection(connection.taken ?? Promise.resolve())).to.be.instanceOf(
      PortUnreachable,
    );
    expect(silent).to.deep.equal(['n1']);
  });
});
