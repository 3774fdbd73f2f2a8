import { expect } from 'chai';
import {
  connect,
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import { newFleetKey, signatureCheck } from '../../src/fleet/link/fleet-keys.ts';
import { answerWords, ask, readWords } from '../../src/fleet/link/link-calls.ts';
import { newSecretHalf } from '../../src/fleet/link/identity.ts';
import type { IdentityCheck } from '../../src/fleet/link/worker-link.ts';
import { eventually } from '../support/harness/eventually.ts';
import { CALLER, REQUEST } from './a-request.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';
import { dialled, inManagersPlace, type TestManager } from './hostile-ends.ts';

type Words = Record<string, unknown>;
/** What the worker is told by the manager, and what it answers, as they are passed on. */
interface Change {
  readonly told?: (words: Words) => Words;
  readonly answered?: (words: Words) => Words;
}

describe('the secret of a link', () => {
  it('is the same on both ends for one transcript, and unknown to others', () => {
    const [manager, worker, other] = [newSecretHalf(), newSecretHalf(), newSecretHalf()];
    const mine = manager.agree(worker.publicKey, 'transcript');
    const theirs = worker.agree(manager.publicKey, 'transcript');
    const signature = mine?.sign('text') ?? '';
    expect(theirs?.isSigned('text', signature)).to.equal(true);
    expect(theirs?.isSigned('text.', signature)).to.equal(false);
    expect(theirs?.isSigned('text', signature.slice(0, -2))).to.equal(false);
    expect(theirs?.isSigned('text', '')).to.equal(false);
    for (const wrong of [
      worker.agree(manager.publicKey, 'another'),
      worker.agree(other.publicKey, 'transcript'),
      other.agree(manager.publicKey, 'transcript'),
    ])
      expect(wrong?.isSigned('text', signature)).to.equal(false);
  });

  it('cannot be derived from an invalid key, or from one that fixes the result', () => {
    // the point of order 1, of which every secret is 0
    const low = Buffer.concat([
      Buffer.from(newSecretHalf().publicKey, 'base64').subarray(0, -32),
      Buffer.alloc(32),
    ]).toString('base64');
    for (const given of ['', 'x', newFleetKey().publicKey, low])
      expect(newSecretHalf().agree(given, 'transcript'), given).to.equal(undefined);
  });
});

describe('a link through an attacker', () => {
  const key = newFleetKey();
  let fleet: FleetUnderTest;
  let between: TestManager | undefined;
  let joined: TestWorker;
  let check: IdentityCheck | undefined;

  beforeEach(async () => {
    fleet = await FleetUnderTest.start({ key });
    check = undefined;
  });
  afterEach(async () => {
    await fleet.stop();
    await between?.stop();
    between = undefined;
  });

  /** Has a worker join over somebody who speaks with each end, and changes what is said. */
  const joinOver = async (change: Change): Promise<void> => {
    between = await inManagersPlace((worker) => {
      void dialled(fleet.port).then((manager) => {
        worker.once('close', () => manager.destroy());
        manager.once('close', () => worker.destroy());
        passOn({ manager, worker, change });
      });
    });
    const { token: joinToken } = await fleet.registry.invite('w1');
    const { port } = between;
    joined = fleet.worker({
      ...{ clusterId: 'w1', joinToken, manager: `ws://127.0.0.1:${port}` },
      serve: (connection: Duplex, given: IdentityCheck) => {
        connection.on('error', () => undefined);
        check = given;
      },
    });
  };

  /** Resolves with what the worker makes of an identity, and with the identity. */
  const identified = async () => {
    await fleet.linked('w1');
    const route = fleet.links.find('w1');
    route?.dial().on('error', () => undefined);
    await eventually(() => check !== undefined, 'the worker takes a connection');
    const identity = route?.identify(CALLER, REQUEST) ?? '';
    const isSigned = signatureCheck(key.publicKey);
    const [signed = '', signature = ''] = identity.split('.');
    return {
      caller: check?.(identity, REQUEST),
      byManagerKey: isSigned?.(signed, signature),
    };
  };

  it('has identities signed by its secret', async () => {
    await joinOver({});
    expect(await identified()).to.deep.equal({ caller: CALLER, byManagerKey: false });
  });

  it("does not open if only one end received the other's half, or a different one", async () => {
    const { publicKey } = newSecretHalf();
    const another = (words: Words): Words =>
      'half' in words ? { ...words, half: publicKey } : words;
    await joinOver({ told: another, answered: another });
    await eventually(() => joined.told.length > 0, 'the worker refuses');
    expect(joined.told[0]).to.include('the manager does not have the key that it names');
    expect(fleet.links.find('w1')).to.equal(undefined);
  });

  it('does not open with an invalid half, and reports the reason', async () => {
    await joinOver({ answered: (words) => ('half' in words ? { ...words, half: 'x' } : words) });
    await eventually(() => joined.told.length > 0, 'it is refused');
    expect(fleet.links.find('w1')).to.equal(undefined);
  });

  const changed = (name: string, value: unknown) => ({
    answered: (words: Words): Words => (name in words ? { ...words, [name]: value } : words),
  });
  for (const [what, change, reason] of [
    ['a signature that is none', changed('signature', 'x'), 'unproved'],
    ['a signature of another key', changed('signature', newFleetKey().sign('x')), 'unproved'],
    ['a version of the link that is none yet', changed('version', 2), 'version'],
  ] as const)
    it(`does not open with ${what}, and reports and counts the failure`, async () => {
      await joinOver(change);
      await eventually(() => joined.told.length > 0, 'it is refused');
      expect(fleet.links.find('w1')).to.equal(undefined);
      const count = (): number => fleet.links.refused.counts.get(reason) ?? 0;
      await eventually(() => count() > 0, 'it is counted');
    });
});

/** Speaks as the manager to the worker, and as the worker to the manager. */
const passOn = ({
  manager,
  worker,
  change: { told = (words) => words, answered = (words) => words },
}: {
  readonly manager: Duplex;
  readonly worker: Duplex;
  readonly change: Change;
}): void => {
  const toWorker = connect('http://worker', { createConnection: () => worker });
  const toManager = performServerHandshake(manager);
  for (const session of [toWorker, toManager]) session.on('error', () => undefined);
  toManager.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => undefined);
    if (headers[':method'] === 'CONNECT') {
      const on = toWorker.request({ ':method': 'CONNECT', ':authority': 'w1' });
      on.on('error', () => undefined);
      stream.respond({ ':status': 200 });
      stream.pipe(on).pipe(stream);
      return;
    }
    void (async () => {
      const words = (await readWords(stream, 1 << 20)) as Words;
      const path = String(headers[':path']);
      const said = (await ask(toWorker, path, told(words))) as Words;
      answerWords(stream, 200, answered(said));
    })().catch(() => stream.close());
  });
};
