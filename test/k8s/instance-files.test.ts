import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { FileRefused } from '../../src/contracts/files.ts';
import { InstanceGone, NotJoinable, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { InstanceFiles } from '../../src/k8s/sandboxes/instance-files.ts';
import { NodeSilent } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import type { AgentStream } from '../../src/k8s/streams/agent-stream.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aFakePod, type FakeLink, type FakePod } from './a-fake-pod-server.ts';

const never = new AbortController().signal;
const place = { id: 'a', path: Buffer.from('/secret') };

/** A frame of an agent, see native/README.md. */
const frame = (type: string, payload: Buffer): Buffer => {
  const head = Buffer.alloc(5);
  head.write(type, 'latin1');
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
};
const TAKEN = Buffer.from([0]);
const A_FOLDER = Buffer.concat([Buffer.from('d'), Buffer.alloc(28 + 4)]);
const STDOUT = 1;
const CLOSED = 255;

describe('files of a Pod', () => {
  let fake: FakePod | undefined;
  afterEach(async () => {
    await fake?.close();
    fake = undefined;
  });

  const files = async (
    attend: (link: FakeLink) => void,
    { clock = new TestClock(), status }: { clock?: TestClock; status?: object } = {},
  ): Promise<InstanceFiles> => {
    const { streams, pod } = (fake = await aFakePod(attend, status ? { status } : {}));
    return new InstanceFiles({
      enter: (_id, _container, way) => way(pod),
      openAgent: (target) => streams.openAgent(target),
      clock,
    });
  };

  it("are requested over the agent's input, with nothing in the address", async () => {
    const stat = (await files((link) => link.send(STDOUT, TAKEN))).stat(place, never);
    await eventually(() => fake?.links[0]?.came(0).includes('/secret'), 'the request came');
    const [link] = fake?.links ?? [];
    link?.send(STDOUT, frame('E', A_FOLDER));

    expect((await stat).kind).to.equal('folder');
    expect(link?.command).to.deep.equal(['/.sandpool/launcher', 'call']);
    expect(decodeURIComponent(link?.url.href ?? '')).to.not.include('secret');
    await eventually(() => link?.came(CLOSED) === '\0', 'the agent may end');
  });

  it('are read completely, or fail if the connection was lost', async () => {
    const four = Buffer.from([0, 0, 0, 0, 0, 0, 0, 4]);
    const stat = Buffer.concat([Buffer.from('f'), Buffer.alloc(12), four, Buffer.alloc(8 + 4)]);
    const head = Buffer.concat([stat, Buffer.alloc(8), four]);
    const read = async (said: string): Promise<string> => {
      const under = await files((link) => {
        link.send(STDOUT, Buffer.concat([TAKEN, frame('H', head), Buffer.from(said)]));
        link.fail('the container runtime restarts');
      });
      return await text((await under.open(place, {}, never)).content);
    };

    expect(await read('file')).to.equal('file');
    await fake?.close();
    expect(await rejection(read('fil'))).to.be.instanceOf(OutcomeUnknown);
  });

  it('repeat the answer to a change if it was lost', async () => {
    const idIn = (link: FakeLink | undefined): string | undefined =>
      /id\0([0-9a-f]{32})\0/.exec(link?.came(0) ?? '')?.[1];
    const under = await files((link) => link.send(STDOUT, TAKEN));
    const moved = under.move(place, { to: Buffer.from('/to'), overwrite: true }, never);
    await eventually(() => idIn(fake?.links[0]) !== undefined, 'the request came');
    fake?.links[0]?.fail('the API server restarts');
    await eventually(() => idIn(fake?.links[1]) !== undefined, 'the answer is asked for');
    const [first, second] = fake?.links ?? [];
    second?.send(STDOUT, frame('E', A_FOLDER));

    expect((await moved).kind).to.equal('folder');
    expect(second?.came(0)).to.contain('answer\0').and.to.not.contain('move');
    expect(idIn(second)).to.equal(idIn(first));
  });

  it('combine single bytes that wait for their reader', async () => {
    fake = await aFakePod((link) => {
      for (let sent = 0; sent < 5_000; sent += 1) link.send(STDOUT, 'x');
      link.fail('the API server restarts');
    });
    const way = await fake.streams.openAgent(fake.pod);
    await eventually(() => fake?.links[0]?.ws.readyState === 3, 'all has come');
    const pieces: number[] = [];
    way.on('data', (piece: Buffer) => pieces.push(piece.length));

    expect(await rejection(once(way, 'close'))).to.be.instanceOf(OutcomeUnknown);
    expect(pieces.reduce((sum, length) => sum + length, 0)).to.equal(5_000);
    expect(pieces.length).to.be.below(100);
  });

  it('repeat a list if a page was lost', async () => {
    let tries = 0;
    const entry = Buffer.concat([Buffer.from('d'), Buffer.alloc(28), Buffer.from('\0\x01a\0\0')]);
    const under = await files((link) => {
      tries += 1;
      link.send(STDOUT, Buffer.concat([TAKEN, frame('H', Buffer.alloc(0)), frame('D', entry)]));
      if (tries === 1) link.fail('the API server restarts');
      else link.send(STDOUT, frame('E', Buffer.alloc(0)));
    });
    const { entries } = await under.list(place, { depth: 1, limit: 10 }, never);

    expect(entries.map(({ path }) => String(path))).to.deep.equal(['a']);
    expect(tries).to.equal(2);
  });

  it('repeat a request without side effects at most six times', async () => {
    const clock = new TestClock();
    const under = await files(
      (link) => {
        link.send(STDOUT, TAKEN);
        link.fail('the API server restarts');
      },
      { clock },
    );
    const lost = rejection(under.stat(place, never));
    await eventually(() => {
      clock.advance(50);
      return fake?.links.length === 6;
    }, 'it was asked six times');

    expect(await lost).to.be.instanceOf(OutcomeUnknown);
    expect(fake?.links).to.have.length(6);
  });

  it('are requested once from an agent that accepts the request and then stays silent', async () => {
    const clock = new TestClock();
    const under = await files((link) => link.send(STDOUT, TAKEN), { clock });
    let refusal: unknown;
    void rejection(under.stat(place, never)).then((error) => (refusal = error));
    await eventually(() => fake?.links[0]?.came(0).includes('/secret'), 'the request came');
    await eventually(() => {
      clock.advance(1_000);
      return refusal !== undefined;
    }, 'it is given up');

    expect(refusal).to.be.instanceOf(OutcomeUnknown);
    expect(fake?.links).to.have.length(1);
  });

  const NEVER_BEGUN: readonly (readonly [string, (link: FakeLink) => void, object])[] = [
    [
      'that has no agent are refused, and say why',
      (link) =>
        link.fail(
          'OCI runtime exec failed: exec: "/.sandpool/launcher": stat /.sandpool/launcher: no such file or directory',
        ),
      FileRefused,
    ],
    [
      'whose runtime answers an exit code alone are refused',
      (link) => link.status(127),
      FileRefused,
    ],
    [
      'whose agent is killed as it begins are not joinable',
      (link) => link.status(137),
      NotJoinable,
    ],
    [
      'on a node that does not answer are not joinable',
      (link) => link.fail('error dialing backend: dial tcp 10.0.0.1:10250: i/o timeout'),
      NodeSilent,
    ],
    [
      'where nothing can be run are not joinable',
      (link) => link.fail('the runtime is out of order'),
      NotJoinable,
    ],
  ];
  for (const [what, attend, refusal] of NEVER_BEGUN)
    it(what, async () => {
      const error = await rejection((await files(attend)).stat(place, never));

      expect(error).to.be.instanceOf(refusal);
      if (error instanceof FileRefused) {
        expect(error.problem).to.equal('unsupported');
        expect(error.message).to.include("Sandpool's agent cannot run");
      }
    });

  it('of an ended sandbox are reported as gone', async () => {
    const ended = { phase: 'Failed', reason: 'Evicted' };
    const under = await files(() => {}, { status: ended });

    expect(await rejection(under.stat(place, never))).to.be.instanceOf(InstanceGone);
  });

  it("are listed as long as the answers fit into the tenant's share of memory", async () => {
    const way = Object.assign(new PassThrough(), {
      hold: (bytes: number) => {
        if (bytes > 10) throw new NotJoinable('answers of sandboxes take too much');
      },
    });
    const under = new InstanceFiles({
      enter: (_id, _container, go) =>
        go({ namespace: 'team', name: 'p', uid: 'u', container: 'c' }),
      openAgent: async () => {
        // What is asked is dropped.
        way._write = (_chunk: unknown, _encoding, done) => done();
        way.push(Buffer.concat([TAKEN, frame('H', Buffer.alloc(0)), frame('D', A_FOLDER)]));
        return way as unknown as AgentStream;
      },
      clock: new TestClock(),
    });
    const listed = under.list(place, { depth: 1, limit: 10 }, never);

    expect(await rejection(listed)).to.be.instanceOf(NotJoinable);
    expect(way.destroyed).to.equal(true);
  });
});
