import { expect } from 'chai';
import { isDeepStrictEqual } from 'node:util';
import { EventReader } from '../support/harness/event-reader.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { clientOf } from '../support/harness/patient-client.ts';
import { TerminalUnderTest, UpgradeRefused } from '../support/harness/a-terminal.ts';
import { rejection } from '../support/harness/rejection.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

/** A whole service, of one daemon or of several. */
export interface ServiceUnderTest {
  /** Of each daemon. */
  readonly ports: readonly number[];
  readonly adminKey: string;
  /** That a pool can be made from. */
  readonly templateName: string;
  /** The namespace of a team, in which objects can be made, for a user who has used nothing yet. */
  namespaceOf(team: string, user?: string): Promise<string>;
}

/** What API keys and quotas promise, whatever carries the service. */
export const keysAndQuotasSuite = (name: string, service: () => ServiceUnderTest): void => {
  const opened: HttpClient[] = [];
  const at = (daemon: number, key: string): HttpClient => {
    const { ports } = service();
    const client = new (clientOf(service()))(ports[daemon % ports.length] ?? 0, key);
    opened.push(client);
    return client;
  };
  const admin = (daemon = 0): HttpClient => at(daemon, service().adminKey);
  const everywhere = <T>(ask: (daemon: number) => Promise<T>): Promise<readonly T[]> =>
    Promise.all(service().ports.map((_, daemon) => ask(daemon)));
  let users = 0;
  /** A user of its own for each test, and a key of theirs. */
  const aUser = async (
    team = 'keys',
  ): Promise<{
    readonly user: string;
    readonly key: string;
    readonly keyId: string;
    readonly fullName: string;
  }> => {
    const user = `user-${(users += 1)}`;
    await service().namespaceOf(team, user);
    const { json, text } = await untilAnswered(201, () =>
      admin().post('/admin/api-keys', { team, user }),
    );
    if (json.apiKey === undefined || json.keyId === undefined || json.name === undefined)
      throw new Error(text);
    return { user, key: json.apiKey, keyId: json.keyId, fullName: json.name };
  };
  const makePool = async (key: string, replicas: number, poolName: string): Promise<void> => {
    await untilAnswered(201, () =>
      at(0, key).post('/sandboxpools', {
        name: poolName,
        templateName: service().templateName,
        replicas,
      }),
    );
    await everywhere((daemon) =>
      eventually(
        async () =>
          statusOf(await at(daemon, key).get(`/sandboxpools/${poolName}`))['idleReplicas'] ===
          replicas,
        'it is filled',
      ),
    );
  };
  const claimed = async (daemon: number, key: string, poolName: string): Promise<string> =>
    (await untilAnswered(201, () => at(daemon, key).post('/sandboxes', { poolName }))).json
      .sandbox?.['sandboxId'] ?? '';
  afterEach(() => {
    for (const client of opened.splice(0)) client.close();
  });

  describe(`API keys: ${name}`, function () {
    it('are valid on all daemons once created, and on none once revoked', async () => {
      const { key, keyId } = await aUser();
      expect(
        await everywhere(async (daemon) => (await at(daemon, key).get('/sandboxes')).status),
      ).to.satisfy((all: number[]) => all.every((status) => status === 200));

      expect((await at(1, key).delete(`/api-keys/${keyId}`)).json).to.deep.equal({
        keyId,
        status: 'deleted',
      });

      await everywhere((daemon) =>
        eventually(
          async () => (await at(daemon, key).get('/sandboxes')).status === 401,
          'it is refused',
        ),
      );
      expect((await at(0, key).get('/sandboxes')).json).to.deep.equal({
        error: 'invalid API key',
        errorCode: 'INVALID_API_KEY',
      });
    });

    it('of others are shown to admins by `?namespace=`, and not to tenants', async () => {
      const [{ user, key }, stranger] = [await aUser(), await aUser('others')];
      const namespace = await service().namespaceOf('keys');
      await makePool(key, 1, user);
      await untilAnswered(201, () =>
        at(0, key).post('/envs', {
          name: `${user}-env`,
          templateRef: { name: service().templateName },
        }),
      );
      const there = `?namespace=${namespace}`;

      const listed = (await admin().get('/sandboxpools?all&limit=200')).json.items?.find(
        (item) => item['name'] === user,
      );
      expect(listed?.['namespace']).to.equal(namespace);
      for (const path of [
        `/sandboxpools/${user}`,
        `/envs/${user}-env`,
        `/envs/${user}-env/sandboxpools`,
        `/envs/${user}-env/autoscaling/groups`,
      ]) {
        expect((await admin(1).get(path + there)).status, path).to.equal(200);
        expect((await admin(1).get(path)).status, path).to.equal(404);
        const { status, json } = await at(2, stranger.key).get(path + there);
        expect([status, json.errorCode, json.detail], path).to.deep.equal([
          403,
          'ADMIN_REQUIRED',
          { field: 'namespace' },
        ]);
      }
      expect(
        (await admin(1).put(`/sandboxpools/${user}${there}`, { replicas: 2 })).json.template,
      ).to.deep.include({ spec: { replicas: 2 }, user });
      for (const path of [
        `/sandboxpools/${namespace}%2F${user}`,
        `/envs/${namespace}%2F${user}-env`,
      ]) {
        const named = await admin(1).get(path);
        expect([named.status, named.json.errorCode], path).to.deep.equal([200, undefined]);
        expect((await admin(1).get(`${path}${there}`)).status, path).to.equal(200);
        const contradicts = await admin(1).get(`${path}?namespace=other`);
        expect([contradicts.status, contradicts.json.detail], path).to.deep.equal([
          400,
          { field: 'namespace' },
        ]);
        for (const tenant of [key, stranger.key]) {
          expect((await at(2, tenant).get(path)).status, path).to.equal(404);
          expect((await at(2, tenant).get(path + there)).status, path).to.equal(403);
        }
        for (const none of [
          path.replace(namespace, 'no-such'),
          `${path}%2Fx`,
          path.replace('%2F', '%2F%2F'),
        ])
          expect((await admin(1).get(none)).status, none).to.be.oneOf([400, 404]);
      }
      expect(
        (await admin(1).put(`/sandboxpools/${namespace}%2F${user}`, { replicas: 1 })).json.template,
      ).to.deep.include({ spec: { replicas: 1 }, user });
      expect(
        (await admin(2).get(`/sandboxpools/${user}?namespace=no-such`)).json.errorCode,
      ).to.equal('POOL_NOT_FOUND');
      expect((await admin(2).delete(`/envs/${user}-env${there}`)).status).to.equal(200);
      expect((await admin(1).delete(`/sandboxpools/${user}${there}`)).json).to.include({
        name: user,
        namespace,
      });
      await eventually(
        async () => (await at(0, key).get(`/sandboxpools/${user}`)).status === 404,
        'it is gone',
      );
    });

    it('of others can be revoked by admins, by id and `?namespace=`, but not by tenants', async () => {
      const [{ key, keyId }, mate, stranger] = [
        await aUser(),
        await aUser(),
        await aUser('others'),
      ];
      const path = `/api-keys/${keyId}?namespace=${await service().namespaceOf('keys')}`;

      for (const tenant of [mate.key, stranger.key, key]) {
        const { status, json } = await at(1, tenant).delete(path);
        expect([status, json.errorCode, json.detail]).to.deep.equal([
          403,
          'ADMIN_REQUIRED',
          { field: 'namespace' },
        ]);
      }
      for (const other of [mate.key, stranger.key])
        expect((await at(1, other).delete(`/api-keys/${keyId}`)).json.errorCode).to.equal(
          'API_KEY_NOT_FOUND',
        );
      for (const elsewhere of ['', '?namespace=no-such'])
        expect(
          (await admin(1).delete(`/api-keys/${keyId}${elsewhere}`)).json.errorCode,
          elsewhere,
        ).to.equal('API_KEY_NOT_FOUND');
      expect((await at(0, key).get('/sandboxes')).status).to.equal(200);

      expect((await admin(1).delete(path)).json).to.deep.equal({ keyId, status: 'deleted' });

      await eventually(
        async () => (await at(0, key).get('/sandboxes')).status === 401,
        'it is refused',
      );
    });

    it('are found by name, in both spellings, by users other than their creator', async () => {
      const [one, two] = [await aUser(), await aUser()];
      const encoded = one.fullName.replace('/', '%2F');

      for (const path of [two.fullName, encoded]) {
        const answer = await admin(1).post(`/admin/api-keys/${path}/promote`);
        expect([answer.status, answer.json.errorCode], path).to.deep.equal([
          503,
          'CLUSTER_UNAVAILABLE',
        ]);
        expect(answer.headers['retry-after']).to.match(/^[1-9]\d*$/);
      }
      expect((await admin(2).delete(`/admin/api-keys/${encoded}`)).json).to.deep.equal({
        keyId: one.keyId,
        status: 'deleted',
      });
      expect((await admin(1).delete(`/admin/api-keys/${two.fullName}`)).json).to.deep.equal({
        keyId: two.keyId,
        status: 'deleted',
      });
      await eventually(
        async () =>
          (await admin(0).delete(`/admin/api-keys/${encoded}`)).json.errorCode ===
          'API_KEY_NOT_FOUND',
        'it is gone',
      );
      expect((await admin().post('/admin/api-keys/none/none/promote')).json.errorCode).to.equal(
        'API_KEY_NOT_FOUND',
      );
    });

    it('end terminals and streams on every daemon when they are revoked', async () => {
      const owner = await aUser();
      const {
        json: { apiKey: other = '', keyId: otherId = '' },
      } = await at(0, owner.key).post('/api-keys', {});
      await makePool(owner.key, 1, owner.user);
      const id = await claimed(0, owner.key, owner.user);
      const open = (daemon: number, key: string) =>
        TerminalUnderTest.open(
          { run: { port: service().ports[daemon] ?? 0 } },
          at(daemon + 1, key),
          id,
        );
      const follow = (daemon: number, path: string) =>
        EventReader.open(service().ports[daemon] ?? 0, path, { 'SERVICE-API-KEY': other });
      const terminals = await everywhere((daemon) => open(daemon, other));
      const readers = (await everywhere((daemon) => follow(daemon, '/events'))).concat(
        await everywhere((daemon) => follow(daemon, `/sandboxes/${id}/logs?follow=true`)),
      );
      for (const reader of readers) reader.read();
      const staying = await open(0, owner.key);
      const {
        json: { token = '' },
      } = await at(0, other).post(`/sandboxes/${id}/exec-token`);

      expect((await admin(1).get('/admin/api-keys?limit=1')).status).to.equal(200);
      expect((await at(1, owner.key).delete(`/api-keys/${otherId}`)).status).to.equal(200);

      for (const terminal of terminals)
        expect(await terminal.closed).to.deep.equal({ code: 4001, reason: 'the key was revoked' });
      for (const reader of readers) await eventually(() => reader.ended, 'the stream has ended');
      const late = await rejection(
        TerminalUnderTest.open({ run: { port: service().ports[0] ?? 0 } }, at(0, owner.key), id, {
          token,
        }),
      );
      expect(late).to.be.instanceOf(UpgradeRefused).with.property('status', 401);
      staying.type('echo $((40 + 2))\n');
      await staying.shows('42');
      await staying.hangUp();
    });

    it('end commands and waiting claims on every daemon with 401', async () => {
      const owner = await aUser();
      const {
        json: { apiKey: other = '', keyId: otherId = '' },
      } = await at(0, owner.key).post('/api-keys', {});
      await makePool(owner.key, 1, owner.user);
      const id = await claimed(0, owner.key, owner.user);
      const mark = `/tmp/under-way-${id}`;
      const run = (command: string): Promise<HttpAnswer> =>
        untilAnswered(200, () => at(0, owner.key).post(`/sandboxes/${id}/exec`, { command }));
      const waiting = everywhere((daemon) =>
        at(daemon, other).post('/sandboxes', { poolName: owner.user, waitTimeoutSeconds: 300 }),
      );
      const running = everywhere((daemon) =>
        at(daemon + 1, other).post(`/sandboxes/${id}/exec`, {
          command: `touch ${mark}-${daemon}; sleep 300`,
        }),
      );
      await eventually(
        async () =>
          (await run(`ls ${mark}-* | wc -l`)).json.stdout?.trim() ===
          String(service().ports.length),
        'they run',
      );

      expect((await at(1, owner.key).delete(`/api-keys/${otherId}`)).status).to.equal(200);

      for (const { status, json } of [...(await running), ...(await waiting)])
        expect([status, json]).to.deep.equal([
          401,
          { error: 'invalid API key', errorCode: 'INVALID_API_KEY' },
        ]);
      await run(`rm -f ${mark}-*`);
      await untilAnswered(200, () =>
        at(0, owner.key).put(`/sandboxpools/${owner.user}`, { replicas: 2 }),
      );
      await eventually(
        async () =>
          statusOf(await at(0, owner.key).get(`/sandboxpools/${owner.user}`))['idleReplicas'] === 1,
        'nobody took the next one',
      );
      expect((await at(0, owner.key).get('/sandboxes')).json.total).to.equal(1);
    });

    it('end terminals when they expire', async () => {
      const owner = await aUser();
      await makePool(owner.key, 1, owner.user);
      const id = await claimed(0, owner.key, owner.user);
      const openedFor = async (lifetimeMs: number) => {
        const {
          json: { apiKey = '' },
        } = await at(0, owner.key).post('/api-keys', {
          expiresAt: new Date(Date.now() + lifetimeMs).toISOString(),
        });
        return {
          apiKey,
          terminals: await everywhere((daemon) =>
            TerminalUnderTest.open(
              { run: { port: service().ports[daemon] ?? 0 } },
              at(daemon, apiKey),
              id,
            ),
          ),
        };
      };
      // A busy machine may take longer to open them.
      const { apiKey, terminals } = await openedFor(4_000)
        .catch(() => openedFor(16_000))
        .catch(() => openedFor(45_000));

      for (const terminal of terminals) expect((await terminal.closed).code).to.equal(4001);

      for (const { status } of await everywhere((daemon) => at(daemon, apiKey).get('/sandboxes')))
        expect(status).to.equal(401);
    });
  });

  describe(`quotas: ${name}`, function () {
    const shown = async (
      client: HttpClient,
      path = '/quotas',
    ): Promise<Readonly<Record<string, readonly unknown[]>>> => {
      const {
        json: { items = [] },
      } = await untilAnswered(200, () => client.get(path));
      return Object.fromEntries(
        items.map(({ resource, limit, used, remaining }) => [
          String(resource),
          [limit, used, remaining],
        ]),
      );
    };
    const setTo = async (user: string, limits: object, team = 'keys'): Promise<void> => {
      await untilAnswered(200, () => admin().put(`/admin/quotas/${team}/${user}`, limits));
      // Each has seen it by then, and goes by it.
      await everywhere((daemon) => shown(admin(daemon), `/admin/quotas/${team}/${user}`));
    };

    it('of 3 grant exactly 3 of 64 claims at once over all daemons', async () => {
      const { user, key } = await aUser();
      await makePool(key, 6, user);
      await setTo(user, { sandboxes: 3 });

      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, n) => at(n, key).post('/sandboxes', { poolName: user })),
      );

      const granted = answers.filter(({ status }) => status === 201);
      expect(new Set(granted.map(({ json }) => json.sandbox?.['sandboxId'])).size).to.equal(3);
      expect(granted).to.have.length(3);
      for (const answer of answers.filter(({ status }) => status !== 201)) expectQuota(answer);
      await everywhere((daemon) =>
        eventually(
          async () => String((await shown(at(daemon, key)))['sandboxes']) === '3,3,0',
          'what was refused is not counted',
        ),
      );
    });

    it('of cpu and memory limit pools created and grown at once over all daemons, and are named', async () => {
      const { user, key } = await aUser();
      await setTo(user, { cpu: '3', memory: '1Gi' });
      const make = (n: number, more: object) =>
        at(n, key).post('/sandboxpools', {
          name: `${user}-${n}`,
          templateName: service().templateName,
          replicas: 2,
          cpu: '500m',
          memory: '64Mi',
          ...more,
        });

      const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => make(n, {})));

      const made = answers.flatMap(({ status, json }) =>
        status === 201 ? [json.template?.['name'] as unknown as string] : [],
      );
      expect(made, answers.map(({ text }) => text).join()).to.have.length(3);
      for (const answer of answers.filter(({ status }) => status !== 201))
        expectPoolQuota(answer, 'cpu');
      expectPoolQuota(await make(20, { cpu: '10m', memory: '1Gi', replicas: 1 }), 'cpu');
      await setTo(user, { cpu: 3.02 });
      expectPoolQuota(await make(21, { cpu: '10m', memory: '1Gi', replicas: 1 }), 'memory');
      const grown = await Promise.all(
        made.flatMap((pool, n) => [
          at(n, key).put(`/sandboxpools/${pool}`, { replicas: 3 }),
          at(n + 1, key).put(`/sandboxpools/${pool}`, { cpu: '1' }),
        ]),
      );
      for (const answer of grown) expectPoolQuota(answer, 'cpu');
      const wanted = { cpu: [3.02, 3, 0.02], memory: [2 ** 30, 6 * 2 ** 26, 10 * 2 ** 26] };
      await eventually(async () => {
        const { cpu, memory } = await shown(at(2, key));
        return isDeepStrictEqual({ cpu, memory }, wanted);
      }, 'what was refused is not counted');

      await setTo(user, { cpu: 'none', memory: 'none' });
      expect(await shown(at(1, key))).to.have.all.keys('sandboxes', 'pools', 'replicas');
    });

    it("belong to each user if a team claims from one member's pool, on every daemon", async () => {
      const [teacher, ann, bob, stranger] = [
        await aUser('class'),
        await aUser('class'),
        await aUser('class'),
        await aUser('others'),
      ];
      const poolName = teacher.user;
      await untilAnswered(201, () =>
        at(0, teacher.key).post('/sandboxpools', {
          name: poolName,
          templateName: service().templateName,
          replicas: 3,
          access: 'team',
        }),
      );
      await eventually(
        async () =>
          statusOf(await at(1, ann.key).get(`/sandboxpools/${poolName}`))['idleReplicas'] === 3,
        'it is filled',
      );

      const ids = [await claimed(1, ann.key, poolName), await claimed(2, bob.key, poolName)];
      expect(new Set(ids).size).to.equal(2);
      expect((await at(2, ann.key).get(`/sandboxes/${ids[0]}`)).json.sandbox).to.include({
        status: 'Running',
        user: ann.user,
      });
      expect((await at(1, bob.key).get(`/sandboxes/${ids[0]}`)).json.errorCode).to.equal(
        'SANDBOX_NOT_FOUND',
      );
      await eventually(
        async () => String((await shown(at(2, ann.key)))['sandboxes']?.[1]) === '1',
        'it is counted',
      );
      expect((await shown(at(2, teacher.key)))['sandboxes']?.[1]).to.equal(0);
      expect(
        (await at(1, ann.key).put(`/sandboxpools/${poolName}`, { replicas: 1 })).json.errorCode,
      ).to.equal('FORBIDDEN');
      expect((await at(1, stranger.key).post('/sandboxes', { poolName })).status).to.equal(403);
      await setTo(ann.user, { sandboxes: 1 }, 'class');
      expectQuota(await at(0, ann.key).post('/sandboxes', { poolName }));
      for (const [index, key] of [ann.key, bob.key].entries())
        expect((await at(index, key).delete(`/sandboxes/${ids[index]}`)).status).to.equal(200);
    });

    it('show on every daemon what an admin set, and keep other fields', async () => {
      const { user, key } = await aUser();
      await setTo(user, { sandboxes: 7 });
      await setTo(user, { pools: 2 });

      for (const all of await everywhere((daemon) => shown(at(daemon, key)))) {
        expect(all).to.include.keys('sandboxes', 'pools', 'replicas');
        expect([all['sandboxes'], all['pools']]).to.deep.equal([
          [7, 0, 7],
          [2, 0, 2],
        ]);
      }
      const { json } = await untilAnswered(200, () => at(0, key).get('/quotas'));
      expect(json.total).to.equal(3);
      expect(json.items?.map((item) => item['name'])).to.deep.equal(
        Array.from({ length: 3 }, () => `keys/${user}`),
      );
      expect((await at(0, key).get(`/admin/quotas/keys/${user}`)).json.errorCode).to.equal(
        'ADMIN_REQUIRED',
      );
      expect(
        (await at(0, key).put(`/admin/quotas/keys/${user}`, { sandboxes: 9 })).json.errorCode,
      ).to.equal('ADMIN_REQUIRED');
    });

    it('below the usage end nothing, and grant nothing more until enough is released', async () => {
      const { user, key } = await aUser();
      await makePool(key, 4, user);
      const ids = [await claimed(0, key, user), await claimed(1, key, user)];
      await setTo(user, { sandboxes: 1, pools: 0, replicas: 2 });

      const used = { sandboxes: [1, 2, 0], pools: [0, 1, 0], replicas: [2, 4, 0] };
      await eventually(
        async () => isDeepStrictEqual(await shown(at(2, key)), used),
        'another daemon shows what is used',
      );
      for (let daemon = 0; daemon < 3; daemon += 1)
        expectQuota(await at(daemon, key).post('/sandboxes', { poolName: user }));
      for (const body of [{ replicas: 5 }])
        expectPoolQuota(await at(1, key).put(`/sandboxpools/${user}`, body));
      expectPoolQuota(
        await at(0, key).post('/sandboxpools', {
          name: `${user}-b`,
          templateName: service().templateName,
          replicas: 0,
        }),
      );
      for (const id of ids)
        expect((await at(0, key).get(`/sandboxes/${id}`)).json.sandbox?.['status']).to.equal(
          'Running',
        );
      await eventually(
        async () =>
          statusOf(await at(0, key).get(`/sandboxpools/${user}`))['runningReplicas'] === 2,
        'both are shown to run',
      );

      for (const id of ids)
        expect((await at(0, key).delete(`/sandboxes/${id}`)).status).to.equal(200);
      await eventually(
        async () => String((await shown(at(1, key)))['sandboxes']) === '1,0,1',
        'both are given back',
      );
      await claimed(2, key, user);
      expect((await at(1, key).put(`/sandboxpools/${user}`, { replicas: 1 })).status).to.equal(200);
      await eventually(
        async () => isDeepStrictEqual((await shown(at(0, key)))['replicas'], [2, 1, 1]),
        'what the pool gave up is not counted',
      );
    });
  });
};

const statusOf = ({ json }: HttpAnswer): Readonly<Record<string, unknown>> =>
  (json.template?.['status'] ?? {}) as Readonly<Record<string, unknown>>;

const expectQuota = ({ status, text, headers }: HttpAnswer): void => {
  expect(status, text).to.equal(429);
  const { detail, ...rest } = JSON.parse(text) as {
    detail: { errCode: string; message: unknown; retryAfter: number };
  };
  expect(rest).to.deep.equal({ error: 'scale failed', errorCode: 'QUOTA_EXCEEDED' });
  expect(detail).to.have.all.keys('errCode', 'message', 'retryAfter');
  expect(detail.errCode).to.equal('QUOTA_EXCEEDED');
  expect(headers['retry-after']).to.equal(String(detail.retryAfter));
};

const expectPoolQuota = ({ status, text, headers }: HttpAnswer, resource?: string): void => {
  expect(status, text).to.equal(429);
  expect(JSON.parse(text)).to.deep.equal({
    error: 'scale failed',
    errorCode: 'QUOTA_EXCEEDED',
    detail: { errCode: 'QUOTA_EXCEEDED', ...(resource === undefined ? {} : { resource }) },
  });
  expect(headers['retry-after']).to.match(/^[1-9]\d*$/);
};
