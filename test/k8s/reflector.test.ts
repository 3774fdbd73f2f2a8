import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { ApiUnreachable } from '../../src/k8s/api/api-errors.ts';
import { Reflector } from '../../src/k8s/api/reflector.ts';
import type { ReflectorDeps, ReflectorTuning } from '../../src/k8s/api/reflector-terms.ts';
import { Mirror } from '../../src/model/mirror/mirror.ts';
import type { MirrorChange } from '../../src/model/mirror/mirror-terms.ts';
import { eventually } from '../support/harness/eventually.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aClientOf, aFakeApiServer, json, type FakeApiServer } from './a-fake-api-server.ts';
import { FakeCollection, type FakeObject } from './a-fake-collection.ts';

type Kept = number;

/** So that no test waits long for a watch to begin again. */
const PAUSES = { firstPauseMs: 5, longestPauseMs: 20 };

describe('the reflector', () => {
  let collection: FakeCollection;
  let api: FakeApiServer;
  let proxy: FaultProxy;
  let server: ApiServer;
  let reflector: Reflector<Kept>;
  let changes: string[];

  type Parts = Partial<Omit<ReflectorDeps<Kept>, 'tuning'>> &
    ReflectorTuning & {
      readonly report?: (change: MirrorChange<Kept>) => void;
    };
  const aReflector = ({
    report = note,
    timings = PAUSES,
    pageSize,
    mostCompared,
    random,
    ...part
  }: Parts = {}): Reflector<Kept> =>
    new Reflector<Kept>({
      api: server.lane('background'),
      watches: server.lane('watches'),
      path: '/things',
      log: quietLog,
      trim: (object) => (object as FakeObject).value,
      mirror: new Mirror({ report }),
      tuning: { timings, pageSize, mostCompared, random },
      ...part,
    });
  const note = ({ type, key, record }: MirrorChange<Kept>): void => {
    changes.push(`${type} ${key} ${record}`);
  };
  const started = async (part: Parts = {}): Promise<void> => {
    reflector = aReflector(part);
    reflector.start();
    await reflector.synced();
    await eventually(() => collection.watchers.size === 1, 'the collection is watched');
  };
  const told = (change: string): Promise<void> =>
    eventually(() => changes.includes(change), `told: ${change}`);
  const mirrors = (): Promise<void> =>
    eventually(
      () =>
        reflector.size === collection.objects.size &&
        [...collection.objects].every(([name, { value }]) => reflector.get(name) === value),
      'the mirror shows what stands',
    );
  /** The next watch gets this for an answer. */
  const nextWatch = (answer: (response: ServerResponse) => void): void => {
    collection.instead = ({ url }, response) => {
      if (!url.includes('watch=true')) return false;
      collection.instead = () => false;
      answer(response);
      return true;
    };
  };
  const event = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`;

  beforeEach(async () => {
    changes = [];
    collection = new FakeCollection();
    api = await aFakeApiServer((request, response) => {
      collection.answer(request, response);
    });
    proxy = new FaultProxy({ host: '127.0.0.1', port: api.port });
    server = aClientOf(await proxy.start());
  });
  afterEach(async () => {
    await reflector.stop();
    await server.close();
    await proxy.stop();
    await api.close();
  });

  it('reports the initial objects page by page, then each change in order', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) collection.put(name, 1);
    await started({ pageSize: 2 });

    collection.put('f', 1);
    collection.put('a', 2);
    collection.remove('b');
    collection.put('b', 3);
    await told('put b 3');

    expect(changes).to.deep.equal([
      'put a 1',
      'put b 1',
      'put c 1',
      'put d 1',
      'put e 1',
      'put f 1',
      'put a 2',
      'gone b 1',
      'put b 3',
    ]);
    expect(collection.lists).to.equal(3);
    expect(reflector.revision).to.equal(collection.revision);
    expect(reflector.counters).to.deep.equal({
      lists: 1,
      relists: 0,
      restarts: 0,
      events: 4,
      mishaps: 0,
    });
  });

  it('requests the next page before it processes the current one', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) collection.put(name, 1);
    const order: string[] = [];
    const lane = server.lane('background');

    await started({
      pageSize: 2,
      api: {
        get: (path) => lane.get(path),
        list: async (path, query) => {
          order.push('page');
          return await lane.list(path, query);
        },
      },
      report: ({ key }) => {
        order.push(key);
      },
    });

    expect(order).to.deep.equal(['page', 'page', 'a', 'b', 'page', 'c', 'd', 'e']);
  });

  it('stores only trimmed objects, and omits those trimmed to nothing', async () => {
    await started({
      trim: (object) =>
        (object as FakeObject).value > 0 ? (object as FakeObject).value : undefined,
    });

    collection.put('a', 0);
    collection.put('b', 1);
    collection.put('b', 0);
    collection.put('c', 1);
    await told('put c 1');

    expect(changes).to.deep.equal(['put b 1', 'gone b 1', 'put c 1']);
    expect(reflector.size).to.equal(1);
  });

  it('resumes from the last revision after a watch ended, without another list', async () => {
    collection.put('a', 1);
    await started();

    for (let round = 0; round < 5; round += 1) {
      const watches = collection.watches;
      collection.endWatches();
      collection.put('a', round + 10);
      await eventually(
        () => collection.watches > watches && collection.watchers.size === 1,
        'watched again',
      );
    }

    await mirrors();
    expect(changes).to.deep.equal([
      'put a 1',
      'put a 10',
      'put a 11',
      'put a 12',
      'put a 13',
      'put a 14',
    ]);
    expect(reflector.counters.lists).to.equal(1);
  });

  it('resumes after a broken connection', async () => {
    collection.put('a', 1);
    await started();

    for (let round = 0; round < 5; round += 1) {
      proxy.cut();
      collection.put('b', round);
      await told(`put b ${round}`);
    }

    expect(changes).to.deep.equal([
      'put a 1',
      'put b 0',
      'put b 1',
      'put b 2',
      'put b 3',
      'put b 4',
    ]);
    expect(reflector.counters).to.include({ lists: 1, restarts: 5 });
  });

  it('detects a silent connection, reports that it is stale, and recovers', async () => {
    collection.put('a', 1);
    await started({ timings: { ...PAUSES, silenceMs: 400 } });
    await eventually(() => {
      collection.bookmark();
      return reflector.stale === undefined;
    }, 'fresh while it is told something');

    proxy.state = 'hold';
    collection.put('a', 2);
    await eventually(() => reflector.stale !== undefined, 'stale');
    await eventually(() => reflector.counters.restarts > 0, 'restarted');
    proxy.state = 'pass';

    await mirrors();
    await eventually(() => reflector.stale === undefined, 'fresh');
    expect(changes).to.deep.equal(['put a 1', 'put a 2']);
  });

  it('stays fresh by bookmarks only', async () => {
    await started({ timings: { ...PAUSES, silenceMs: 3_000 } });
    const until = performance.now() + 5_000;

    await eventually(() => {
      collection.bookmark();
      expect(reflector.stale).to.equal(undefined);
      return performance.now() > until;
    }, 'five seconds');

    expect(reflector.counters).to.include({ restarts: 0, events: 0 });
  });

  const forgotten = {
    kind: 'Status',
    status: 'Failure',
    reason: 'Expired',
    message: 'too old resource version',
    code: 410,
  };
  for (const [how, answer] of [
    [
      'as a status',
      (response: ServerResponse) => {
        json(response, forgotten, 410);
      },
    ],
    [
      'as an event',
      (response: ServerResponse) => {
        response.end(event('ERROR', forgotten));
      },
    ],
  ] as const) {
    it(`lists again when its revision is forgotten (${how}), and reports what disappeared`, async () => {
      for (const name of ['a', 'b', 'c', 'd']) collection.put(name, 1);
      await started({ pageSize: 3 });
      changes = [];

      nextWatch(answer);
      collection.cutWatches();
      collection.remove('b');
      collection.put('c', 2);
      collection.remove('d');
      collection.put('d', 4); // made again, with another uid
      collection.put('e', 5);
      collection.forget();

      await told('gone b 1');
      await mirrors();
      expect(changes).to.deep.equal(['put c 2', 'gone d 1', 'put d 4', 'put e 5', 'gone b 1']);
      expect(reflector.counters).to.include({ lists: 2, relists: 1 });
      collection.put('a', 9);
      await told('put a 9');
    });
  }

  it('restarts its list when a page has expired', async () => {
    for (const name of ['a', 'b', 'c']) collection.put(name, 1);
    let pages = 0;
    collection.instead = ({ url }, response) => {
      if (!url.includes('continue=') || pages++ > 0) return false;
      json(response, forgotten, 410);
      return true;
    };

    await started({ pageSize: 2 });

    expect(changes).to.deep.equal(['put a 1', 'put b 1', 'put c 1']);
  });

  for (const [what, line] of [
    ['a line that is no JSON', '{"type":"ADDED","object":{'],
    ['a line that is no event', '[1]'],
    ['an event of unknown type', '{"type":"WHAT","object":{}}'],
    [
      'an object without a name',
      '{"type":"ADDED","object":{"metadata":{"resourceVersion":"999"}}}',
    ],
    [
      'an object without a revision',
      '{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u"}}}',
    ],
    ['an error that is not ours', '{"type":"ERROR","object":{"code":500,"message":"etcd"}}'],
    ['a line of 9 MiB', `"${'x'.repeat(9 * 2 ** 20)}"`],
  ] as const) {
    it(`continues after ${what}`, async () => {
      await started();

      collection.send(line);
      await eventually(() => reflector.counters.restarts === 1, 'restarted');
      collection.put('a', 1);

      await told('put a 1');
      expect(reflector.counters.lists).to.equal(1);
    });
  }

  it('continues after refusals of every kind', async () => {
    await started();
    for (const status of [401, 403, 404, 429, 500, 503]) {
      const { restarts } = reflector.counters;
      nextWatch((response) => {
        json(response, { kind: 'Status', code: status, message: 'no' }, status);
      });
      collection.endWatches();
      await eventually(() => reflector.counters.restarts > restarts, 'restarted');
    }

    collection.put('a', 1);
    await told('put a 1');
    expect(reflector.counters.lists).to.equal(1);
  });

  it('waits before it renews watches that end at once', async () => {
    await started({ timings: { firstPauseMs: 40, longestPauseMs: 40 } });
    const [before, began] = [collection.watches, performance.now()];
    const tookMs = (): number => performance.now() - began;

    await eventually(() => {
      collection.endWatches();
      return tookMs() > 400 && collection.watches - before >= 2;
    }, 'two more watches, and four tenths of a second');

    expect(collection.watches - before).to.be.at.most(tookMs() / 20 + 1);
  });

  it('trusts the list if the store was replaced by an older copy', async () => {
    for (let i = 0; i < 10; i += 1) collection.put('a', i);
    await started();
    const older = new FakeCollection();
    older.put('b', 1);

    collection.send(
      JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '99' } } }),
    );
    collection.instead = (request, response) => {
      older.answer(request, response);
      return true;
    };

    await told('gone a 9');
    expect([reflector.get('b'), reflector.size, reflector.revision]).to.deep.equal([
      1,
      1,
      older.revision,
    ]);
  });

  describe('with a store restored from an older copy', () => {
    const restored = (): void => {
      collection.restore(90, ['a']);
      collection.put('c', 3);
    };
    beforeEach(() => {
      collection.put('a', 1);
      collection.put('b', 1);
    });
    const seen = async (): Promise<void> => {
      await told('gone b 1');
      await told('put c 3');
      await eventually(
        () => reflector.stale === undefined && reflector.revision === collection.revision,
        'it is fresh again',
      );
      collection.put('d', 4);
      await told('put d 4');
    };

    it('notices it after a watch without events', async () => {
      await started({ timings: { ...PAUSES, watchSeconds: 1 } });
      restored();
      collection.endWatches();
      await seen();
    });

    it('notices it even if the store has passed the old revision', async () => {
      await started({ timings: { ...PAUSES, watchSeconds: 1 } });
      restored();
      for (let more = 0; more < 40; more += 1) collection.elsewhere();
      collection.endWatches();
      await seen();
    });

    it('notices it when its watch breaks, and is stale until the list is complete', async () => {
      await started();
      restored();
      let goOn: (() => void) | undefined;
      collection.instead = ({ url }, response) => {
        if (!url.includes('limit=250')) return false;
        collection.instead = () => false;
        goOn = () => {
          collection.answer({ method: 'GET', url, headers: {}, body: '' }, response);
        };
        return true;
      };
      collection.cutWatches();
      await eventually(
        () => reflector.stale?.includes('went back') === true && goOn !== undefined,
        'stale',
      );
      goOn?.();
      await seen();
    });

    it('does not count as caught up', async () => {
      await started({ mostCompared: 0 });
      restored();
      await reflector.caughtUp(30_000);
      expect(reflector.get('b')).to.equal(undefined);
      expect(reflector.get('c')).to.equal(3);
    });
  });

  it('survives a listener or a trimmer that throws', async () => {
    collection.put('a', 1);
    await started({
      trim: (object) => {
        const { value } = object as FakeObject;
        if (value === 2) throw new Error('unreadable');
        return value;
      },
      report: (change) => {
        note(change);
        throw new Error('not taken in');
      },
    });

    collection.put('a', 2);
    collection.put('a', 3);
    collection.remove('a');

    await told('gone a 3');
    expect(changes).to.deep.equal(['put a 1', 'put a 3', 'gone a 3']);
    expect(reflector.counters).to.include({ mishaps: 4, restarts: 0 });
  });

  it('catches up with a small collection by comparison, without a bookmark', async () => {
    await started();
    expect(collection.timeoutSeconds).to.be.within(24, 30);
    collection.put('a', 1);
    collection.put('b', 1);
    collection.remove('a');
    collection.elsewhere();
    await reflector.caughtUp(30_000);
    expect(changes).to.deep.equal(['put a 1', 'put b 1', 'gone a 1']);
    expect(reflector.counters).to.include({ lists: 1, restarts: 0 });
  });

  it('waits for a missing change or deletion in a small collection', async () => {
    collection.put('a', 1);
    collection.put('b', 1);
    await started({ timings: { silenceMs: 30_000 } });
    collection.withhold();
    collection.put('a', 2);
    collection.remove('b');
    collection.put('c', 1);
    let isDone = false;
    const done = reflector.caughtUp(30_000).then(() => {
      isDone = true;
    });
    await eventually(() => collection.lists === 2, 'it is compared');
    collection.letGo(2);
    await eventually(() => changes.includes('gone b 1'), 'two changes came');
    expect(isDone).to.equal(false);
    collection.letGo(1);
    await done;
    expect(changes).to.deep.equal(['put a 1', 'put b 1', 'put a 2', 'gone b 1', 'put c 1']);
  });

  it('catches up with a large collection by an event, or a bookmark of a short watch', async () => {
    collection.put('a', 1);
    await started({ mostCompared: 0 });
    collection.put('a', 2);
    await reflector.caughtUp(30_000);
    expect(changes).to.deep.equal(['put a 1', 'put a 2']);

    collection.elsewhere();
    const caughtUp = reflector.caughtUp(30_000);
    await eventually(
      () => collection.timeoutSeconds === 3 && collection.watchers.size === 1,
      'a watch that ends soon',
    );
    collection.bookmark();
    await caughtUp;

    expect(reflector.revision).to.equal(collection.revision);
    expect(reflector.counters).to.include({ lists: 1, restarts: 0 });
  });

  it('reports a newer object from a single read at once, and only once', async () => {
    collection.put('a', 1);
    await started();
    collection.instead = ({ url }, response) => {
      const object = url.startsWith('/things/') ? collection.objects.get('a') : undefined;
      if (object) json(response, object);
      return object !== undefined;
    };
    collection.withhold();
    collection.put('a', 2);
    collection.put('a', 3);
    await reflector.look('a', '/things/a');
    expect(changes).to.deep.equal(['put a 1', 'put a 3']);

    collection.put('b', 1);
    collection.letGo(3);
    await told('put b 1');
    expect(changes).to.deep.equal(['put a 1', 'put a 3', 'put b 1']);
  });

  it('reports whether it reaches a revision soon, without extra requests', async () => {
    collection.put('a', 1);
    await started({ mostCompared: 0 });
    expect(await reflector.reached(collection.revision, 0)).to.equal(true);

    collection.elsewhere();
    expect(await reflector.reached(collection.revision, 20)).to.equal(false);
    const reached = reflector.reached(collection.revision, 30_000);
    collection.put('a', 2);
    expect(await reached).to.equal(true);

    expect(collection.timeoutSeconds).to.be.within(24, 30);
    expect(reflector.counters).to.include({ lists: 1, restarts: 0 });
  });

  it('stops waiting for a revision at the deadline', async () => {
    collection.put('a', 1);
    await started({ mostCompared: 0 });
    collection.elsewhere();

    expect(await rejection(reflector.caughtUp(50))).to.be.instanceOf(ApiUnreachable);
  });

  it('is not synced before the last page, and reports so', async () => {
    for (const name of ['a', 'b', 'c']) collection.put(name, 1);
    let release: (() => void) | undefined;
    collection.instead = ({ url }, response) => {
      if (!url.includes('continue=') || release) return false;
      release = () => {
        json(response, {
          metadata: { resourceVersion: collection.revision },
          items: [collection.objects.get('c')],
        });
      };
      return true;
    };
    reflector = aReflector({ pageSize: 2 });
    reflector.start();
    let synced = false;
    void reflector.synced().then(() => {
      synced = true;
    });

    await eventually(() => release !== undefined, 'the last page is asked for');
    expect([synced, reflector.stale, changes]).to.deep.equal([
      false,
      'not listed yet',
      ['put a 1', 'put b 1'],
    ]);
    release?.();
    await reflector.synced();

    expect([reflector.stale, reflector.size]).to.deep.equal([undefined, 3]);
  });

  it('yields to the event loop after each slice', async () => {
    for (let i = 0; i < 3_000; i += 1) collection.put(`n${i}`, i);
    let [run, longest, watching] = [0, 0, true];
    const turn = (): void => {
      run = 0;
      if (watching) setImmediate(turn);
    };
    turn();
    // A slice is 8 ms: fewer fit in where the machine is slow, never more.
    const slowly = (): void => {
      run += 1;
      longest = Math.max(longest, run);
      for (const until = performance.now() + 0.2; performance.now() < until;);
    };

    await started({ report: slowly, timings: { silenceMs: 30_000 } });
    for (let i = 0; i < 1_000; i += 1) collection.put(`n${i}`, -1);
    await eventually(() => reflector.revision === collection.revision, 'all of it came');
    watching = false;

    expect(longest).to.be.within(1, 60);
  });

  it('reports nothing after its stop, and releases its waiters', async () => {
    collection.put('a', 1);
    await started({ mostCompared: 0 });
    collection.elsewhere();
    const waiting = rejection(reflector.caughtUp(60_000));
    await eventually(() => collection.timeoutSeconds === 3, 'it waits');

    await reflector.stop();
    collection.put('a', 1);

    await waiting;
    expect(changes).to.deep.equal(['put a 1']);
  });

  it('stops while the API server is silent, and reports no late answer', async () => {
    collection.put('a', 1);
    let answer: (() => void) | undefined;
    collection.instead = (request, response) => {
      collection.instead = () => false;
      answer = () => collection.answer(request, response);
      return true;
    };
    reflector = aReflector();
    reflector.start();
    await eventually(() => answer !== undefined, 'it is asked');
    let isOver = false;
    void reflector.stop().then(() => {
      isOver = true;
    });

    await eventually(() => isOver, 'it has stopped');
    answer?.();
    await server.lane('background').get('/things'); // its answer comes later
    expect(changes).to.deep.equal([]);
  });
});
