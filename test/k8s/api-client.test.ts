import { expect } from 'chai';
import type { ServerResponse } from 'node:http';
import { WRITE_MS } from '../../src/contracts/coordination/quotas.ts';
import { LeaseLost, OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import type { ApiServer } from '../../src/k8s/api/api-calls.ts';
import { ApiRefused, ApiUnreachable, NotSent } from '../../src/k8s/api/api-errors.ts';
import type { OngoingTrace } from '../../src/contracts/tracing.ts';
import { AsyncScope } from '../../src/lib/async-scope.ts';
import { eventually, NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { FaultProxy } from '../support/harness/fault-proxy.ts';
import { rejection } from '../support/harness/rejection.ts';
import {
  aClientOf,
  aFakeApiServer,
  json,
  plainAccess,
  type FakeApiServer,
  type SeenRequest,
} from './a-fake-api-server.ts';

type Answering = (request: SeenRequest, response: ServerResponse) => void;

describe('the API client', () => {
  let api: FakeApiServer;
  let proxy: FaultProxy;
  let server: ApiServer;
  let answer: Answering;
  const claims = () => server.lane('claims');
  const soon = { deadlineMs: 400 };
  /** Of what is to be answered. */
  const patient = { deadlineMs: NEVER_COMES_MS };

  beforeEach(async () => {
    answer = (_request, response) => {
      json(response, { ok: true });
    };
    api = await aFakeApiServer((request, response) => {
      answer(request, response);
    });
    proxy = new FaultProxy({ host: '127.0.0.1', port: api.port });
    server = aClientOf(await proxy.start());
  });
  afterEach(async () => {
    await server.close();
    await proxy.stop();
    await api.close();
  });

  it('does not send a write whose permission ends while it waits', async () => {
    const held: ServerResponse[] = [];
    answer = (_request, response) => {
      held.push(response);
    };
    const before = Array.from({ length: 32 }, (_, n) => claims().get(`/api/v1/pods/${n}`));
    await eventually(
      () => held.length === 32,
      'every connection that one namespace may have is in use',
    );
    let permitted = true;
    const late = rejection(claims().replace('/apis/x', { a: 1 }, { permitted: () => permitted }));
    permitted = false;
    answer = (_request, response) => {
      json(response, { ok: true });
    };
    for (const response of held) json(response, { ok: true });
    await Promise.all(before);

    expect(await late).to.be.instanceOf(LeaseLost);
    expect(api.seen.filter(({ method }) => method === 'PUT')).to.deep.equal([]);
    permitted = true;
    await claims().replace('/apis/x', { a: 1 }, { permitted: () => permitted });
    expect(api.seen.at(-1)?.url).to.equal(`/apis/x?timeout=${WRITE_MS}ms`);
  });

  it('keeps connections for others if one namespace asks for too many, and refuses only that one', async () => {
    const held: ServerResponse[] = [];
    answer = ({ url }, response) => {
      if (url.includes('/loud/')) held.push(response);
      else json(response, { ok: true });
    };
    const refused: unknown[] = [];
    const loud = Array.from({ length: 2_200 }, (_, n) =>
      claims()
        .get(`/api/v1/namespaces/loud/pods/${n}`)
        .catch((error: unknown) => {
          refused.push(error);
        }),
    );
    await eventually(() => held.length === 32, 'the loud one has what it may have');
    await eventually(
      () => refused.length === 2_200 - 32 - 2_048,
      'what is beyond its share of those that wait is refused',
    );

    expect(await claims().get('/api/v1/namespaces/quiet/pods/mine')).to.deep.equal({ ok: true });
    expect(refused.every((error) => error instanceof NotSent)).to.equal(true);
    expect(held).to.have.length(32);
    answer = (_request, response) => {
      json(response, { ok: true });
    };
    for (const response of held) json(response, { ok: true });
    await Promise.all(loud);
  });

  it('shares a running read among all callers, but no list or write', async () => {
    const held: ServerResponse[] = [];
    answer = (_request, response) => {
      held.push(response);
    };
    const path = '/api/v1/namespaces/a/pods/x';
    const first = claims().get(path);
    await eventually(() => held.length === 1, 'it is read');
    const later = Array.from({ length: 20 }, () => claims().get(path));
    json(held[0]!, { read: 1 });
    expect(await first).to.deep.equal({ read: 1 });
    await eventually(() => held.length === 2, 'it is read once more, for all who came meanwhile');
    json(held[1]!, { read: 2 });

    expect(await Promise.all(later)).to.deep.equal(later.map(() => ({ read: 2 })));
    expect(held).to.have.length(2);
    const others = [
      claims().list('/api/v1/namespaces/a/pods', {}),
      claims().list('/api/v1/namespaces/a/pods', {}),
      claims().create(path, {}),
      claims().create(path, {}),
      claims().get(`${path}-y`),
    ];
    await eventually(() => held.length === 2 + others.length, 'each of these is sent');
    for (const response of held.slice(2)) json(response, { ok: true });
    await Promise.all(others);
  });

  it('sends the right request for each method, and parses the JSON answer', async () => {
    const path = '/api/v1/namespaces/a/pods';

    expect(
      await claims().get(`${path}/x`, { query: { pretty: false, none: undefined } }),
    ).to.deep.equal({ ok: true });
    await claims().list(path, { labelSelector: 'a=b,c', limit: 20 });
    await claims().create(path, { a: 'ä' });
    await claims().replace(`${path}/x`, { b: 1 });
    await claims().patch(`${path}/x`, { c: null });
    await claims().remove(`${path}/x`, { uid: 'u', resourceVersion: '7', gracePeriodSeconds: 0 });

    expect(
      api.seen.map(({ method, url, headers, body }) => [
        method,
        url,
        headers['content-type'],
        body,
      ]),
    ).to.deep.equal([
      ['GET', `${path}/x?pretty=false`, undefined, ''],
      ['GET', `${path}?labelSelector=a%3Db%2Cc&limit=20`, undefined, ''],
      ['POST', path, 'application/json', '{"a":"ä"}'],
      ['PUT', `${path}/x`, 'application/json', '{"b":1}'],
      ['PATCH', `${path}/x`, 'application/merge-patch+json', '{"c":null}'],
      [
        'DELETE',
        `${path}/x`,
        'application/json',
        '{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"preconditions":{"uid":"u","resourceVersion":"7"}}',
      ],
    ]);
    expect(api.seen[0]?.headers).to.deep.include({
      'user-agent': 'sandpool/0.0.1',
      accept: 'application/json',
    });
    // undici frees a connection one turn of the loop after its answer
    expect(proxy.connections).to.be.at.most(2);
  });

  it('forwards the trace of its request, and reports the outcome', async () => {
    const scope = new AsyncScope<OngoingTrace>();
    const ended: (readonly unknown[])[] = [];
    const aTrace = (id: string): OngoingTrace => ({
      call: (name) => ({
        traceparent: `${id}-${name}`,
        ended: (outcome, attributes) => {
          ended.push([id, name, outcome, attributes]);
        },
      }),
    });
    const own = aClientOf(api.port, { traceScope: scope });
    answer = ({ method }, response) => {
      json(response, {}, method === 'PUT' ? 409 : 200);
    };
    const work = (name: string) => async (): Promise<void> => {
      await own.lane('claims').get(`/api/v1/namespaces/a/pods/${name}`);
      await rejection(
        own
          .lane('claims')
          .replace(`/apis/sandpool.dev/v1alpha1/namespaces/a/sandboxes/${name}`, {}),
      );
    };
    try {
      await Promise.all([
        scope.within(aTrace('one'), work('one')),
        scope.within(aTrace('two'), work('two')),
        work('nobody')(),
      ]);
    } finally {
      await own.close();
    }

    for (const id of ['one', 'two', undefined]) {
      expect(
        api.seen
          .filter(({ url }) => url.endsWith(id ?? 'nobody'))
          .map(({ headers }) => headers['traceparent']),
      ).to.deep.equal(
        id === undefined ? [undefined, undefined] : [`${id}-GET pods`, `${id}-PUT sandboxes`],
      );
      expect(ended.filter(([of]) => of === id)).to.deep.equal(
        id === undefined
          ? []
          : [
              [id, 'GET pods', 'good', {}],
              [id, 'PUT sandboxes', 'failed', { 'http.response.status_code': 409 }],
            ],
      );
    }
  });

  it('uses the current credentials, and reports their rejection', async () => {
    let [token, rejected] = ['Bearer one', 0];
    answer = (_request, response) => {
      json(response, { kind: 'Status', message: 'Unauthorized', reason: 'Unauthorized' }, 401);
    };
    const own = aClientOf(api.port, {
      access: plainAccess(api.port, {
        authorization: () => token,
        rejected: () => {
          rejected += 1;
        },
      }),
    });

    await rejection(own.lane('claims').get('/a'));
    token = 'Bearer two';
    await rejection(own.lane('claims').get('/a'));
    await own.close();

    expect(api.seen.map(({ headers }) => headers.authorization)).to.deep.equal([
      'Bearer one',
      'Bearer two',
    ]);
    expect(rejected).to.equal(2);
  });

  it('returns a refusal with all of its fields', async () => {
    answer = (_request, response) => {
      json(
        response,
        {
          kind: 'Status',
          reason: 'Invalid',
          message: 'no',
          details: {
            retryAfterSeconds: 3,
            causes: [{ reason: 'FieldValueInvalid', field: 'spec.a', message: 'bad' }],
          },
        },
        422,
      );
    };

    const refused = await rejection(claims().create('/a', {}));

    expect(refused).to.be.instanceOf(ApiRefused);
    expect({ ...refused, message: refused.message }).to.deep.equal({
      name: 'ApiRefused',
      status: 422,
      reason: 'Invalid',
      message: 'no',
      retryAfterSeconds: 3,
      missing: undefined,
      causes: [{ reason: 'FieldValueInvalid', field: 'spec.a', message: 'bad' }],
    });
  });

  it('accepts a refusal that is not a Status', async () => {
    answer = (_request, response) => {
      response.writeHead(429, { 'retry-after': '2' }).end('<html>slow down</html>');
    };

    expect(await rejection(claims().create('/a', {}))).to.include({
      status: 429,
      reason: '',
      retryAfterSeconds: 2,
      message: 'status 429: <html>slow down</html>',
    });
  });

  it('treats status 500 or more as unknown for a write, and as refused for a read', async () => {
    answer = (_request, response) => {
      json(response, { kind: 'Status', reason: 'Timeout', message: 'request timed out' }, 504);
    };

    const [write, read] = [
      await rejection(claims().replace('/a', {})),
      await rejection(claims().get('/a')),
    ];

    expect(write).to.be.instanceOf(OutcomeUnknown);
    expect(write.cause).to.include({ name: 'ApiRefused', status: 504, reason: 'Timeout' });
    expect(read).to.be.instanceOf(ApiRefused);
  });

  it('treats an answer that is not JSON as no answer', async () => {
    answer = (_request, response) => {
      response.end('hello');
    };

    expect(await rejection(claims().get('/a'))).to.be.instanceOf(ApiUnreachable);
    expect(await rejection(claims().create('/a', {}))).to.be.instanceOf(OutcomeUnknown);
  });

  it('knows that nothing was sent if the connection was refused', async () => {
    await proxy.stop();

    expect(await rejection(claims().create('/a', {}))).to.be.instanceOf(NotSent);
    expect(await rejection(claims().get('/a'))).to.be.instanceOf(NotSent);
  });

  it('reports that nothing was sent if no connection became free, and never sends that write', async () => {
    answer = () => undefined;
    const stuck = Array.from(
      { length: 16 },
      (_, n) => rejection(server.lane('background').get(`/stuck/${n}`, patient)), // until they are cut
    );
    await eventually(() => api.seen.length === 16, 'sixteen requests on their way');

    expect(await rejection(server.lane('background').create('/late', {}, soon))).to.be.instanceOf(
      NotSent,
    );

    proxy.cut();
    await proxy.stop();
    await Promise.all(stuck);
    expect(api.seen.filter(({ url }) => url === '/late')).to.deep.equal([]);
  });

  it('reports the end of the queue of claims, or returns after a second', async () => {
    const held: ServerResponse[] = [];
    answer = (_request, response) => {
      held.push(response);
    };
    await server.calm('claims');
    const claimed = Array.from({ length: 18 }, () => claims().create('/claim', {}));
    await eventually(() => held.length === 18, 'they are on their way');
    let calm = 0;
    const first = server.calm('claims').then(() => {
      calm += 1;
    });
    await server.calm('background');
    expect(calm).to.equal(0);

    const [one, ...others] = held;
    if (one) json(one, {});
    await first;
    const began = performance.now();
    const again = claims().create('/claim', {});
    await eventually(() => held.length === 19, 'it is on its way');
    await server.calm('claims');
    expect(performance.now() - began).to.be.at.least(900);

    for (const response of [...others, ...held.slice(18)]) json(response, {});
    await Promise.all([...claimed, again]);
  });

  it('sends claims before waiting background calls', async () => {
    answer = ({ url }, response) => {
      if (url === '/claim') json(response, {});
    };
    const stuck = Array.from({ length: 40 }, () =>
      rejection(server.lane('background').get('/stuck', soon)),
    );

    await claims().create('/claim', {}, patient);

    await Promise.all(stuck);
  });

  for (const state of ['swallow-answers', 'hold'] as const) {
    it(`treats a write without an answer as unknown (${state})`, async () => {
      await claims().get('/warm');
      proxy.state = state;

      expect(await rejection(claims().create('/a', {}, soon))).to.be.instanceOf(OutcomeUnknown);
      expect(await rejection(claims().get('/a', soon))).to.be.instanceOf(ApiUnreachable);
    });
  }

  it('treats a write whose connection broke as unknown, and does not repeat it', async () => {
    await claims().get('/warm');
    proxy.state = 'cut-answers';

    for (const write of [
      claims().create('/w', {}),
      claims().replace('/w', {}),
      claims().remove('/w'),
    ])
      expect(await rejection(write)).to.be.instanceOf(OutcomeUnknown);

    proxy.state = 'pass';
    await claims().get('/after');
    expect(api.seen.map(({ method, url }) => `${method} ${url}`).sort()).to.deep.equal([
      'DELETE /w',
      'GET /after',
      'GET /warm',
      'POST /w',
      'PUT /w',
    ]);
  });

  it('repeats a read if a kept-alive connection proves dead', async () => {
    await claims().get('/warm');
    let cuts = 1;
    answer = ({ url }, response) => {
      if (url === '/a' && cuts-- > 0) response.socket?.resetAndDestroy();
      else json(response, { read: true });
    };

    expect(await claims().get('/a')).to.deep.equal({ read: true });
    expect(api.seen.filter(({ url }) => url === '/a')).to.have.length(2);
  });

  it('works again after each fault', async () => {
    for (const state of ['swallow-answers', 'cut-answers', 'hold'] as const) {
      proxy.state = state;
      await rejection(claims().create('/a', {}, soon));
      proxy.state = 'pass';

      expect(await claims().get('/b', patient)).to.deep.equal({ ok: true });
    }
  });

  it('applies its deadline to the whole call: waiting, connecting and the answer', async () => {
    proxy.delayMs = 100;
    const began = performance.now();

    await rejection(claims().get('/a', { deadlineMs: 150 }));

    expect(performance.now() - began).to.be.at.least(140);
  });
});
