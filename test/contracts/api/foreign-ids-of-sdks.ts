import { expect } from 'chai';
import { v7 as uuidV7 } from 'uuid';
import { controlRoutes, type ControlDeps } from '../../../src/http/e2b/control/routes.ts';
import { compatibleId } from '../../../src/http/e2b/sandbox-id.ts';
import { toCompatibleForm } from '../../../src/model/api-key-text.ts';
import { signatureOf } from '../../../src/services/keys/signed-links.ts';
import { readPidFile } from '../../../src/daemon/process/pid-file.ts';
import { eventually } from '../../support/harness/eventually.ts';
import {
  compatibleClient,
  type HttpAnswer,
  type HttpAsk,
} from '../../support/harness/http-client.ts';
import type { Belongings, Tenant } from './belongings.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  claimedFrom,
  type RunningService,
} from './running-service.ts';

/** Who is in `foreignIdsSuite`. */
export interface ForeignWorld {
  readonly service: RunningService;
  readonly owned: Belongings;
  /** One of the owner's team, and one of another. */
  readonly others: readonly Tenant[];
}

interface Asked extends HttpAsk {
  readonly method: string;
  readonly path: string;
}

/** What each operation needs beside the id, and what none of them takes. */
const BODIES: Readonly<Record<string, readonly object[]>> = {
  timeout: [{ timeout: 60 }, { timeout: 'x' }],
  pause: [{}, { memory: 7 }],
  connect: [{ timeout: 60 }, { timeout: -7 }],
};
const JSON_TYPE = { 'Content-Type': 'application/json' };
const STREAM_TYPE = { 'Content-Type': 'application/connect+json' };
const KINDS = ['running', 'idle', 'finished'] as const;

/**
 * What the port of E2B's SDKs tells a tenant about another's sandboxes: as much as of those that
 * there are not. To be called within the suite of such a world.
 */
export const foreignIdsOfSdks = (world: () => ForeignWorld): void => {
  const clients: ReturnType<typeof compatibleClient>[] = [];
  before(() => {
    for (const folder of world().service.dataDirs) {
      const address = readPidFile(folder)?.compatibleAddress ?? '';
      clients.push(compatibleClient(Number(new URL(address).port)));
    }
  });
  after(() => {
    for (const client of clients) client.close();
  });

  let tried = 0;
  /** All in the long suites, else one after the other. */
  const kindsInTurn = (): readonly (typeof KINDS)[number][] => {
    tried += 1;
    return KINDS.filter((_, n) => process.env['TEST_LONG'] === '1' || n === tried % KINDS.length);
  };

  let turn = 0;
  /** By each daemon in turn; what a busy one has no time for again. */
  const ask = async ({ method, path, ...more }: Asked): Promise<HttpAnswer> => {
    turn += 1;
    const client = clients[turn % clients.length];
    if (!client) throw new Error('there is no such port');
    let answer = await client.send(method, path, more);
    if (answer.status === 503)
      await eventually(
        async () => (answer = await client.send(method, path, more)).status !== 503,
        `${method} ${path} is answered by a daemon that has the time`,
        () => answer.text,
      );
    return answer;
  };
  /** The answer to both; fails where they differ. */
  const same = async (asked: (id: string) => Asked, foreign: string): Promise<HttpAnswer> => {
    const nobodys = asked(uuidV7());
    const [theirs, none] = [await ask(asked(foreign)), await ask(nobodys)];
    expect(shown(theirs), `${nobodys.method} ${nobodys.path}`).to.deep.equal(shown(none));
    return theirs;
  };

  for (const { method, path } of controlRoutes({} as ControlDeps).filter((row) =>
    row.path.includes('{sandboxId}'),
  ))
    it(`make ${method} ${path} at the port of E2B's SDKs answer 404 like unknown ids`, async () => {
      const { owned, others } = world();
      const [good, ...bad] = BODIES[path.split('/').at(-1) ?? ''] ?? [undefined];
      for (const { key } of others)
        for (const kind of KINDS)
          for (const spelled of [compatibleId, (id: string) => id]) {
            const asked = (body: object | undefined) => (id: string) => ({
              ...{ method, path: path.replace('{sandboxId}', spelled(id)), key },
              body,
            });
            const { status, text } = await same(asked(good), owned[kind]);
            expect([status, Object.keys(JSON.parse(text) as object)], text).to.deep.equal([
              404,
              ['code', 'message'],
            ]);
            for (const body of bad)
              expect((await same(asked(body), owned[kind])).status).to.equal(400);
          }
    });

  it("grant no access to a foreign sandbox at the port of E2B's SDKs, nor reveal it", async () => {
    const { owned, others, service } = world();
    for (const other of others) {
      const own = await aSandboxOf(other, service);
      for (const token of [
        own.access,
        own.traffic,
        other.key,
        toCompatibleForm(other.key),
        undefined,
      ])
        for (const named of [byHeaders, byHost])
          for (const call of CALLS)
            for (const kind of kindsInTurn()) {
              const asked = (id: string): Asked => {
                const headers = { ...call.headers, ...named(id, call.port), ...tokens(token) };
                return { ...call, headers };
              };
              const { status, text } = await same(asked, owned[kind]);
              expect(status, `${call.method} ${call.path} ${kind} ${text}`).to.equal(401);
            }
      await ask({ method: 'DELETE', path: `/sandboxes/${compatibleId(own.id)}`, key: other.key });
    }
  });

  it('do not match the signature of another sandbox', async () => {
    const { owned, others, service } = world();
    for (const [at, other] of others.entries()) {
      const own = await aSandboxOf(other, service);
      const signature = signatureOf(`/etc/passwd:read::${own.access}`);
      const path = `/files?${String(new URLSearchParams({ path: '/etc/passwd', signature }))}`;
      for (const kind of KINDS) {
        const asked = (id: string): Asked => ({
          ...{ method: 'GET', path },
          // each address may be wrong so often
          headers: { ...byHeaders(id, 49_983), 'X-Forwarded-For': `192.0.2.${at + 1}` },
        });
        expect((await same(asked, owned[kind])).status).to.equal(401);
      }
    }
  });

  it("do not appear in lists at the port of E2B's SDKs", async () => {
    const { owned, others } = world();
    for (const { key } of others)
      for (const query of ['', '?state=running', `?template=${owned.pool}`, '?order=asc&limit=100'])
        for (const path of [`/v2/sandboxes${query}`]) {
          const { status, text } = await ask({ method: 'GET', path, key });
          expect(status, text).to.be.oneOf([200, 404]);
          for (const kind of KINDS) expect(text).to.not.include(compatibleId(owned[kind]));
        }
  });

  it("of pools grant no sandbox at the port of E2B's SDKs", async () => {
    const { owned, others } = world();
    for (const { key } of others)
      for (const templateID of [owned.pool, `local::${owned.pool}`]) {
        const body = { templateID };
        const { status, text } = await ask({ method: 'POST', path: '/v2/sandboxes', key, body });
        expect([status, text.includes('belongs to another')], text).to.deep.equal([403, true]);
      }
  });

  interface OwnSandbox {
    readonly id: string;
    readonly access: string;
    readonly traffic: string;
  }

  const aSandboxOf = async (tenant: Tenant, service: RunningService): Promise<OwnSandbox> => {
    const pool = aName('pool');
    await aPoolOf(tenant.ask, pool, { replicas: 1, template: aTemplateOf(service) });
    const id = await claimedFrom(tenant.ask, pool);
    const path = `/sandboxes/${compatibleId(id)}`;
    let text = '';
    await eventually(async () => {
      const answer = await ask({ method: 'GET', path, key: tenant.key });
      text = answer.text;
      return answer.status === 200;
    }, 'its tokens are told');
    const told = JSON.parse(text) as Readonly<Record<string, string>>;
    await tenant.ask().put(`/sandboxpools/${pool}`, { replicas: 0 });
    return {
      id,
      access: told['envdAccessToken'] ?? '',
      traffic: told['trafficAccessToken'] ?? '',
    };
  };
};

/** Requests that are for a sandbox. */
const CALLS: readonly (Asked & { readonly port: number })[] = [
  { port: 49_983, method: 'GET', path: '/health' },
  { port: 49_983, method: 'GET', path: '/files?path=/etc/passwd' },
  { port: 49_983, method: 'POST', path: '/files?path=/tmp/x', raw: 'x' },
  { port: 49_983, method: 'POST', path: '/process.Process/List', body: {}, headers: JSON_TYPE },
  { port: 49_983, method: 'POST', path: '/process.Process/Start', raw: '', headers: STREAM_TYPE },
  { port: 49_983, method: 'POST', path: '/filesystem.Filesystem/Stat', body: { path: '/' } },
  { port: 49_999, method: 'POST', path: '/execute', body: { code: '1' }, headers: JSON_TYPE },
  { port: 8_080, method: 'GET', path: '/' },
];

const byHeaders = (id: string, port: number): Readonly<Record<string, string>> => ({
  'E2b-Sandbox-Id': compatibleId(id),
  'E2b-Sandbox-Port': String(port),
});
const byHost = (id: string, port: number): Readonly<Record<string, string>> => ({
  Host: `${port}-${compatibleId(id)}.sandboxes.test`,
});

const tokens = (token: string | undefined): Readonly<Record<string, string>> =>
  token === undefined ? {} : { 'X-Access-Token': token, 'E2B-Traffic-Access-Token': token };

const OF_EACH: ReadonlySet<string> = new Set(['date', 'x-request-id']);

const shown = ({ status, text, headers }: HttpAnswer) => ({
  ...{ status, text },
  headers: Object.entries(headers).filter(([header]) => !OF_EACH.has(header)),
});
