import { expect } from 'chai';
import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import { MOST_PROMOTED, type PromotedChange } from '../../src/contracts/fleet/promoted-keys.ts';
import { newFleetKey, signatureCheck } from '../../src/fleet/link/fleet-keys.ts';
import { answerWords, readWords } from '../../src/fleet/link/link-calls.ts';
import { newSecretHalf } from '../../src/fleet/link/identity.ts';
import { ManagerHello, transcriptOf } from '../../src/fleet/link/link-words.ts';
import { KEY_WORDS } from '../../src/fleet/link/told/record-words.ts';
import { RecordListener, MOST_TOLD, signedWord } from '../../src/fleet/link/told/told-records.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { FleetUnderTest } from './a-fleet.ts';
import { ClusterKeys } from './a-promoting-fleet.ts';
import { dialled } from './hostile-ends.ts';

const serve = (connection: Duplex): void => void connection.destroy();
const promoted = (keyId: string) => ({
  ...{ keyId, shortName: 'ci', team: 'blue', user: 'ada', role: 'admin', description: '' },
  ...{ verifier: 'f'.repeat(64), issuedAt: 0, expiresAt: 9e12 },
});
const FIRST = { number: 1, now: 0, whole: 'end', keys: [promoted('keykeykeykey')], gone: [] };

describe('a message about promoted keys to a worker', () => {
  const key = newFleetKey();
  let heard: PromotedChange[];
  const listener = (transcript = 'this link'): RecordListener<PromotedChange> => {
    heard = [];
    return new RecordListener({
      words: KEY_WORDS,
      transcript,
      isSigned: signatureCheck(key.publicKey)!,
      visit: {
        take: async (change) => void heard.push(change),
        caughtUp: async () => undefined,
        left: async () => undefined,
        end: () => undefined,
      },
    });
  };
  const word = (words: object, { by = key, link = 'this link' } = {}) => {
    const text = JSON.stringify(words);
    return { text, signature: by.sign(signedWord(KEY_WORDS, link, text)) };
  };

  it('is accepted only once, on any link', async () => {
    const keys = listener();
    const first = word(FIRST);
    expect(await keys.take(first)).to.deep.equal({ number: 1 });
    expect(await rejection(keys.take(first))).to.match(/was repeated/);
    expect(await rejection(listener('the next link').take(first))).to.match(
      /not signed by the manager for this link/,
    );
    expect(heard).to.have.length(0);
  });

  it('is refused from others, out of order, malformed or without a bound', async () => {
    const many = Array.from({ length: MOST_PROMOTED + 1 }, (_, n) => promoted(`keykeykeykey${n}`));
    for (const wrong of [
      word(FIRST, { by: newFleetKey() }),
      { ...word(FIRST), signature: '' },
      { ...word(FIRST), text: word(FIRST).text.replace('user', 'admin') },
      word({ ...FIRST, number: 2 }),
      word({ ...FIRST, number: 1_000_000 }), // from the future
      word({ ...FIRST, number: 0.5 }),
      word({ ...FIRST, whole: undefined }), // a change, before all is known
      word({ ...FIRST, keys: [{ ...promoted('keykeykeykey'), role: 'root' }] }),
      word({ ...FIRST, keys: [{ ...promoted('keykeykeykey'), verifier: '../../x' }] }),
      word({ ...FIRST, keys: [promoted('../../../keys')] }),
      word({ ...FIRST, keys: many }),
      word([]),
      { text: 'no JSON', signature: key.sign(signedWord(KEY_WORDS, 'this link', 'no JSON')) },
      { text: 'x'.repeat(MOST_TOLD + 1), signature: 'x' },
      null,
    ]) {
      const keys = listener();
      expect(await rejection(keys.take(wrong)), JSON.stringify(wrong)).to.be.instanceOf(Error);
      expect([heard.length, keys.isCaughtUp]).to.deep.equal([0, false]);
    }
    const inParts = listener();
    await inParts.take(word({ ...FIRST, whole: 'more', keys: many.slice(1) }));
    const last = word({ ...FIRST, number: 2, keys: many.slice(0, 1) });
    expect(await rejection(inParts.take(last))).to.match(/too many/);
  });

  it('is refused from a manager that has not proved its identity', async () => {
    const hub = await ClusterKeys.start(1, systemClock());
    const west = await ClusterKeys.start(2, systemClock());
    const fleet = await FleetUnderTest.start({ keys: hub.keys });
    const foreign = await FleetUnderTest.start({ keys: hub.keys });
    try {
      const { token } = await fleet.registry.invite('west');
      const { record, apiKey } = await hub.mint();
      await hub.promote(record);
      let begun = false;
      const { begin } = west.copies;
      west.copies.begin = (manager) => {
        begun = true;
        return begin.call(west.copies, manager);
      };
      const worker = foreign.worker({
        ...{ clusterId: 'west', serve, joinToken: token, keys: west.copies },
      });
      await eventually(() => worker.told.length > 0, 'it refuses');
      expect([begun, west.told(apiKey)]).to.deep.equal([false, 'INVALID_API_KEY']);
    } finally {
      await Promise.all([fleet.stop(), foreign.stop()]);
    }
  });
});

describe('a worker with false reports about promoted keys', () => {
  let hub: ClusterKeys;
  let fleet: FleetUnderTest;
  let clock: TestClock;
  let socket: Socket | undefined;

  beforeEach(async () => {
    clock = new TestClock();
    hub = await ClusterKeys.start(1, clock);
    fleet = await FleetUnderTest.start({ clock, keys: hub.keys });
  });
  afterEach(async () => {
    socket?.destroy();
    await fleet.stop();
  });

  /** Links in order, and answers what it is told of keys by `answer`. */
  const liar = async (answer: (number: number) => object | undefined): Promise<void> => {
    const own = newFleetKey();
    const { token: joinToken } = await fleet.registry.invite('west');
    socket = await dialled(fleet.port);
    const hello = {
      ...{ version: 1, clusterID: 'west', clusterKey: own.publicKey, nonce: 'n' },
      ...{ replica: 'west-0', address: 'ws://hub', half: newSecretHalf().publicKey },
    };
    let manager: ManagerHello;
    const hear = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void => {
      stream.on('error', () => undefined);
      void (async () => {
        const body = (await readWords(stream, 2 * MOST_TOLD)) as Record<string, string>;
        const path = headers[':path'];
        if (path === '/hello') manager = ManagerHello.parse(body);
        const said =
          path === '/hello'
            ? hello
            : path === '/prove'
              ? { signature: own.sign(transcriptOf('worker', manager, hello)), joinToken }
              : path === '/keys'
                ? answer((JSON.parse(body['text']!) as { number: number }).number)
                : path === '/templates'
                  ? { number: (JSON.parse(body['text']!) as { number: number }).number }
                  : path === '/leave'
                    ? undefined
                    : {};
        if (said) answerWords(stream, 200, said);
      })().catch(() => undefined);
    };
    const session = performServerHandshake(socket);
    session.on('error', () => undefined);
    session.on('stream', hear);
  };

  it('is not linked if it acknowledges future messages', async () => {
    await liar((number) => ({ number: number + 1_000 }));
    await eventually(() => socket!.destroyed, 'it is cut');
    expect(fleet.links.find('west')).to.equal(undefined);
  });

  it('is disconnected if it does not acknowledge a revocation in time, which still takes effect', async () => {
    const { record, apiKey } = await hub.mint();
    await hub.promote(record);
    await liar((number) => (number === 1 ? { number } : undefined));
    await fleet.linked('west');
    await hub.apiKeys.remove(hub.apiKeys.find(record.keyId)!);
    const settled = fleet.links.keysSettled();
    clock.advance(5_000);
    await settled;
    expect(fleet.links.find('west')).to.equal(undefined);
    expect(hub.told(apiKey)).to.equal('INVALID_API_KEY');
  });
});
