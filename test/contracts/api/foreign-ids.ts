import { expect } from 'chai';
import { randomBytes } from 'node:crypto';
import { v7 as uuidV7 } from 'uuid';
import {
  type DocumentedOperation,
  documentedOperations,
} from '../../support/harness/documented-answers.ts';
import { EventReader } from '../../support/harness/event-reader.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { type GeneratedRequest, requestsTo } from '../../support/builders/generated-requests.ts';
import { TerminalUnderTest, tokenFor, UpgradeRefused } from '../../support/harness/a-terminal.ts';
import type { HttpAnswer, HttpClient } from '../../support/harness/http-client.ts';
import { rejection } from '../../support/harness/rejection.ts';
import {
  aTenantOf,
  type Belongings,
  belongingsOf,
  expectUnharmed,
  type Tenant,
} from './belongings.ts';
import { PatientClient } from '../../support/harness/patient-client.ts';
import {
  aName,
  aPoolOf,
  aTemplateOf,
  claimedFrom,
  Clients,
  type RunningService,
} from './running-service.ts';
import { foreignIdsOfSdks } from './foreign-ids-of-sdks.ts';
import { LEAST_BODIES, LEAST_QUERIES } from './least-requests.ts';

const SEED = Number(process.env['MATRIX_SEED'] ?? Date.now() % 1_000_000_000);
const IS_LONG = process.env['TEST_LONG'] === '1';
/** Made up anew each time. */
const REQUESTS_EACH = IS_LONG ? 12 : 6;
const POOL_NOT_OWNED = {
  error: 'pool belongs to another team/user; create in a pool of your own',
  errorCode: 'POOL_NOT_OWNED',
};

/** What stands in a request for an id: by the name of the parameter. */
type Ids = Readonly<Record<string, string>>;
/** Another's, and such that nobody has, as long. */
interface Pair {
  readonly what: string;
  readonly foreign: Ids;
  readonly unknown: Ids;
}

const operationIdOf = ({ operation }: DocumentedOperation): string =>
  String(operation['operationId']);
const accessOf = ({ operation }: DocumentedOperation): 'open' | 'tenant' | 'admin' => {
  const security = JSON.stringify(operation['security']);
  // What sessions alone may call is not a key's at all: test/http/approval-attacks.test.ts.
  return !security.includes('KeyAuth')
    ? 'open'
    : security.includes('AdminKeyAuth')
      ? 'admin'
      : 'tenant';
};
const parametersOf = ({ path }: DocumentedOperation): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);

/** Templates are everybody's. */
const OF_EVERYBODY: ReadonlySet<string> = new Set(['getTemplate']);
/** These name no id in their path, and have tests of their own below. */
const CREATING: ReadonlySet<string> = new Set([
  'claimSandbox',
  'createPool',
  'createEnv',
  'createApiKey',
]);

/**
 * What the API tells a tenant about another's things: nothing, whatever is asked. The operations
 * are the document's.
 */
export const foreignIdsSuite = (name: string, service: () => RunningService): void => {
  describe(`another tenant's ids: ${name}`, function () {
    const clients = new Clients(service, PatientClient);
    let owner: Tenant;
    let owned: Belongings;
    /** One of the same team, so of the same namespace; and one of another. */
    let others: readonly Tenant[];

    before(async () => {
      console.info(`    MATRIX_SEED=${SEED}`);
      owner = await aTenantOf(service(), clients, 'matrix');
      others = [
        await aTenantOf(service(), clients, 'matrix'),
        await aTenantOf(service(), clients, 'elsewhere'),
      ];
      owned = await belongingsOf(service(), owner);
    });
    // No harm mends itself, so a look at the end finds it too; one after each test says what did it.
    if (IS_LONG)
      afterEach("what is the owner's stays as it is", () => expectUnharmed(owner, owned));
    after("what is the owner's is as it was; TEST_LONG=1 says which test harms it", async () => {
      try {
        await expectUnharmed(owner, owned);
      } finally {
        await owner.ask().delete(`/envs/${owned.env}?force=true`);
        await owner.ask().delete(`/sandboxpools/${owned.pool}?force=true`);
        clients.close();
      }
    });

    /** Words that only the owner's things have. */
    const marks = (): readonly string[] => [
      owner.user,
      owner.key,
      owned.pool,
      owned.env,
      owned.member,
      owned.running,
      owned.idle,
      owned.finished,
      owned.keyId,
      owned.keyName.split('/')[1] ?? '',
      `${owned.pool}-label`,
    ];
    const expectNothingOfTheirs = (text: string, whatFor: string): void => {
      for (const mark of marks()) expect(text, whatFor).to.not.include(mark);
    };

    for (const documented of documentedOperations) {
      if (
        accessOf(documented) === 'open' ||
        OF_EVERYBODY.has(operationIdOf(documented)) ||
        CREATING.has(operationIdOf(documented))
      )
        continue;
      const requests = requestsTo(documented, placeholders(documented), {
        seed: SEED,
        count: REQUESTS_EACH,
      }).filter(({ headers }) => headers['SERVICE-API-KEY'] === undefined);

      if (accessOf(documented) === 'admin') {
        it(`${documented.method} ${documented.path} needs an admin, whatever the request names`, async () => {
          for (const other of others) {
            for (const [at, pair] of pairsFor(documented, owned, owner).entries()) {
              const valid = requests.filter(({ kind }) => kind === 'valid');
              for (const request of madeFor(at, valid).concat(plain(documented))) {
                const answer = await expectSame(other.ask, request, pair);
                expect([answer.status, answer.json.errorCode], answer.text).to.deep.equal([
                  403,
                  'ADMIN_REQUIRED',
                ]);
              }
            }
          }
        });
      } else if (parametersOf(documented).length > 0) {
        it(`${documented.method} ${documented.path} gives the same answer for a foreign id as for an unknown one`, async () => {
          for (const other of others) {
            for (const [at, pair] of pairsFor(documented, owned, owner).entries()) {
              let answer: HttpAnswer | undefined;
              const made = madeFor(at, requests.filter(namesAnId));
              for (const request of made.concat(plain(documented))) {
                answer = await expectSame(other.ask, request, pair);
                const said = `${request.method} ${request.target} ${pair.what}: ${answer.text}`;
                const asAdmin =
                  namesANamespace(request) && answer.json.errorCode === 'ADMIN_REQUIRED';
                expect(answer.status, said)
                  .to.be.within(400, 499)
                  .and.not.be.oneOf(asAdmin ? [409, 412] : [403, 409, 412]);
                expectNothingOfTheirs(
                  withoutIds(answer.text, pair.foreign),
                  `${request.target} ${pair.what}`,
                );
              }
              const { detail, ...said } = answer?.json ?? {};
              expect(
                [answer?.status, Object.keys(said).sort(), Object.keys(detail ?? {})],
                `the plain one: ${documented.path} ${pair.what}`,
              ).to.deep.equal([
                404,
                ['error', 'errorCode'],
                said.errorCode === 'POOL_NOT_FOUND' ? ['poolName', 'hint'] : [],
              ]);
            }
          }
        });
      } else if (documented.method === 'GET' && operationIdOf(documented) !== 'followEvents') {
        it(`${documented.method} ${documented.path} shows no foreign resources`, async () => {
          for (const other of others) {
            for (const pair of pairsFor(documented, owned, owner)) {
              for (const request of requests.concat(plain(documented))) {
                const answer = namesAnId(request)
                  ? await expectSame(other.ask, request, pair)
                  : await send(other.ask, request, pair.foreign);
                expectNothingOfTheirs(answer.text, request.target);
              }
            }
          }
        });
      }
    }

    it('are requested from every operation', () => {
      const rest = documentedOperations.filter(
        (documented) =>
          accessOf(documented) === 'tenant' &&
          documented.method !== 'GET' &&
          parametersOf(documented).length === 0,
      );
      expect(rest.map(operationIdOf)).to.have.members([...CREATING]);
    });

    it('of pools grant no claim: 403, or 404 if nobody has such a pool', async () => {
      const [teammate, stranger] = others as readonly [Tenant, Tenant];
      for (const { ask } of [teammate, stranger]) {
        for (const spelled of [owned.pool, `local::${owned.pool}`]) {
          for (const more of [{}, { waitTimeoutSeconds: 5 }, { idleTimeout: '5m' }]) {
            const refused = await ask().post('/sandboxes', { poolName: spelled, ...more });
            expect([refused.status, JSON.parse(refused.text)], spelled).to.deep.equal([
              403,
              POOL_NOT_OWNED,
            ]);
          }
        }
        const unknown = await ask().post('/sandboxes', { poolName: aName('pool') });
        expect([unknown.status, unknown.json.error]).to.deep.equal([404, 'pool not found']);
        expect(unknown.json.detail?.['availablePools']).to.deep.equal([]);
        expectNothingOfTheirs(unknown.text, 'the hint');
      }
    });

    it('do not appear in hints, while own ids do', async () => {
      for (const other of others) {
        const pool = aName('pool');
        await aPoolOf(other.ask, pool, { replicas: 0, template: aTemplateOf(service()) });
        await eventually(async () => {
          const { json, text } = await other.ask().post('/sandboxes', { poolName: aName('pool') });
          expectNothingOfTheirs(text, 'availablePools');
          return JSON.stringify(json.detail?.['availablePools']).includes(pool);
        }, 'its own pool is named');
        const { text, status } = await other
          .ask()
          .post('/sandboxpools', { name: aName('pool'), templateName: aName('none') });
        expect(status).to.equal(404);
        expectNothingOfTheirs(text, 'availableTemplates');
        await other.ask().delete(`/sandboxpools/${pool}`);
      }
    });

    it('can be used again in another namespace, and their own namespace reveals only that they are taken', async () => {
      const [teammate, stranger] = others as readonly [Tenant, Tenant];
      const body = { name: owned.pool, replicas: 0, template: aTemplateOf(service()) };

      const taken = await teammate.ask().post('/sandboxpools', body);
      expect([taken.status, JSON.parse(taken.text)]).to.deep.equal([
        409,
        { error: 'pool already exists', errorCode: 'ALREADY_EXISTS' },
      ]);
      expect((await stranger.ask().post('/sandboxpools', body)).status).to.equal(201);
      expect((await stranger.ask().get(`/sandboxpools/${owned.pool}`)).json.template).to.include({
        user: stranger.user,
      });
      await eventually(
        async () => (await stranger.ask().delete(`/sandboxpools/${owned.pool}`)).status === 404,
        'it is gone',
      );
    });

    it('create no key for another user, with the same answer for unknown users', async () => {
      for (const { ask } of others) {
        for (const body of [
          { team: owner.team },
          { user: owner.user },
          { user: aName('user') },
          { team: owner.team, user: owner.user, role: 'user' },
        ]) {
          const { status, json } = await ask().post('/api-keys', body);
          expect([status, json.errorCode, Object.keys(json.detail ?? {})]).to.deep.equal([
            403,
            'ADMIN_REQUIRED',
            ['field'],
          ]);
        }
      }
    });

    it('return no foreign answer under the same Idempotency-Key', async () => {
      const headers = { 'Idempotency-Key': aName('once') };
      const mine = await owner.ask().post('/api-keys', { name: aName('key') }, { headers });
      for (const { ask, user } of others) {
        const theirs = await ask().post('/api-keys', { name: aName('key') }, { headers });
        expect(theirs.json).to.include({ user }).and.not.include({ keyId: mine.json.keyId });
        expect(theirs.headers).to.not.have.property('idempotency-replayed');
      }
      await owner.ask().delete(`/api-keys/${mine.json.keyId}`);
    });

    it('grant no access to endpoints', async () => {
      for (const { ask } of others) {
        const at = (id: string): Promise<HttpAnswer> =>
          ask().get(`/sandboxes/${id}/endpoints/web/`);
        const [foreign, unknown] = [await at(owned.running), await at(uuidV7())];
        expect([foreign.status, foreign.text, shownHeaders(foreign, {})]).to.deep.equal([
          404,
          unknown.text,
          shownHeaders(unknown, {}),
        ]);
      }
    });

    it('grant no terminal: a token works for its own sandbox only', async () => {
      for (const { ask } of others) {
        const pool = aName('pool');
        await aPoolOf(ask, pool, { replicas: 1, template: aTemplateOf(service()) });
        const own = await claimedFrom(ask, pool);
        const refusedAt = async (id: string, token: string): Promise<object> => {
          const refused = await rejection(
            TerminalUnderTest.open({ run: { port: service().ports[0] ?? 0 } }, ask(), id, {
              token,
            }),
          );
          if (!(refused instanceof UpgradeRefused)) throw refused;
          return {
            status: refused.status,
            body: refused.body,
            headers: shownHeaders({ headers: refused.headers as HttpAnswer['headers'] }, {}),
          };
        };
        const unknown = await refusedAt(uuidV7(), 'no-token-of-anybody');
        expect(unknown).to.deep.include({ status: 401 });

        for (const id of [
          owned.running,
          owned.idle,
          owned.finished,
          `local.${owned.running}`,
          uuidV7(),
        ]) {
          const [used, owners] = [
            await tokenFor(ask(), own),
            await tokenFor(owner.ask(), owned.running),
          ];
          expect(await refusedAt(id, used), id).to.deep.equal(unknown);
          expect(await refusedAt(own, used), 'it is used up').to.deep.equal(unknown);
          expect(await refusedAt(own, owners), "the owner's at another's").to.deep.equal(unknown);
        }
        await ask().delete(`/sandboxpools/${pool}?force=true`);
      }
    });

    it('name no volume of another namespace', async () => {
      const [teammate, stranger] = others as readonly [Tenant, Tenant];
      const volume = await service().volumeOf(owner.team);
      const mounting = (claimName: string): object => ({
        replicas: 0,
        template: aTemplateOf(service()),
        overrides: { volumes: [{ claimName, mountPath: '/data' }] },
      });
      const pool = aName('pool');
      await eventually(
        async () => (await teammate.ask().get('/volumes')).text.includes(volume),
        'its own namespace shows it',
      );
      for (const query of ['', `?namespace=${owned.namespace}`, `?team=${owner.team}`])
        expect((await stranger.ask().get(`/volumes${query}`)).text).to.not.include(volume);
      await aPoolOf(stranger.ask, pool, { replicas: 0, template: aTemplateOf(service()) });

      for (const [method, path, more] of [
        ['POST', '/sandboxpools', { name: aName('pool') }],
        ['PUT', `/sandboxpools/${pool}`, {}],
      ] as const) {
        const request: GeneratedRequest = {
          method,
          target: path,
          headers: {},
          raw: Buffer.from(JSON.stringify({ ...mounting(placeholder('claimName')), ...more })),
          kind: 'valid',
        };
        const refused = await expectSame(stranger.ask, request, {
          what: 'volume',
          foreign: { claimName: volume },
          unknown: { claimName: other(volume) },
        });
        expect([refused.status, refused.json.detail?.['field']], refused.text).to.deep.equal([
          400,
          'overrides.volumes[0].claimName',
        ]);
        expectNothingOfTheirs(refused.text, path);
        expect(refused.text).to.not.include(volume);
      }
      const mounted = aName('pool');
      await aPoolOf(teammate.ask, mounted, mounting(volume));
      for (const [{ ask }, name] of [
        [stranger, pool],
        [teammate, mounted],
      ] as const)
        await ask().delete(`/sandboxpools/${name}`);
    });

    it('do not appear in the events of others', async () => {
      const readers = await Promise.all(
        others.flatMap(({ key }) =>
          service().ports.map((port) =>
            EventReader.open(port, '/events', { 'SERVICE-API-KEY': key }),
          ),
        ),
      );
      for (const reader of readers) reader.read();

      const passing: string[] = [];
      for (const { ask } of [owner, ...others]) {
        const pool = aName('pool');
        await aPoolOf(ask, pool, { replicas: 1, template: aTemplateOf(service()) });
        const id = await claimedFrom(ask, pool);
        await ask().delete(`/sandboxpools/${pool}?force=true`);
        if (ask === owner.ask) passing.push(pool, id);
      }

      for (const reader of readers) {
        await eventually(() => reader.text.includes('Claimed'), 'it tells of its own');
        expectNothingOfTheirs(reader.text, '/events');
        for (const mark of passing) expect(reader.text).to.not.include(mark);
      }
    });

    // at last: it makes pools of theirs
    foreignIdsOfSdks(() => ({ service: service(), owned, others }));
  });
};

/** Stands for an id until the request is sent. */
const placeholder = (parameter: string): string => `zz${parameter}zz`;
const PLACEHOLDER = /zz(\w+?)zz/g;
const QUERY_FIELDS = ['poolName', 'namespace', 'team', 'user'];

const placeholders = (documented: DocumentedOperation) => ({
  path: Object.fromEntries(
    parametersOf(documented).map((parameter) => [parameter, [placeholder(parameter)] as const]),
  ),
  fields: Object.fromEntries(QUERY_FIELDS.map((field) => [field, [placeholder(field)] as const])),
});

/** An admin's alone, whatever it names. */
const namesANamespace = ({ target }: GeneratedRequest): boolean => /[?&]namespace=/.test(target);
const namesAnId = ({ target }: GeneratedRequest): boolean => target.match(PLACEHOLDER) !== null;

/** With nothing but what it needs. */
const plain = (documented: DocumentedOperation): GeneratedRequest => {
  const body =
    NEEDED[operationIdOf(documented)] ?? (documented.operation['requestBody'] ? {} : undefined);
  return {
    method: documented.method,
    target: documented.path
      .replaceAll(/\{(\w+)\}/g, (_, parameter: string) => placeholder(parameter))
      .concat(LEAST_QUERIES[operationIdOf(documented)] ?? ''),
    headers: {},
    raw: body && Buffer.from(JSON.stringify(body)),
    kind: 'valid',
  };
};

const NEEDED: Readonly<Record<string, object>> = {
  ...LEAST_BODIES,
  updatePool: { replicas: 0 },
  replaceEnv: { templateRef: { name: 'default' } },
};

/** All for each pair of ids in the long suites, else another one for each. */
const madeFor = (at: number, requests: readonly GeneratedRequest[]): readonly GeneratedRequest[] =>
  requests.filter((_, n) => IS_LONG || n === at);

/** A kind of id that is not known here is a fault of the matrix: it would go untried. */
const pairsFor = (
  documented: DocumentedOperation,
  owned: Belongings,
  owner: Tenant,
): readonly Pair[] => {
  const { path } = documented;
  const named = {
    poolName: owned.pool,
    namespace: owned.namespace,
    team: owner.team,
    user: owner.user,
  };
  const nobodys = {
    poolName: other(owned.pool),
    namespace: other(owned.namespace),
    team: other(owner.team),
    user: other(owner.user),
  };
  const pair = (what: string, foreign: Ids, unknown: Ids): Pair => ({
    what,
    foreign: { ...named, ...foreign },
    unknown: { ...nobodys, ...unknown },
  });
  const both = (
    what: string,
    parameter: string,
    foreign: string,
    unknown: string,
    prefix: string,
  ): readonly Pair[] =>
    ['', prefix].map((before) =>
      pair(
        `${before}${what}`,
        { [parameter]: before + foreign },
        { [parameter]: before + unknown },
      ),
    );
  const [keyNamespace = '', shortName = ''] = owned.keyName.split('/');
  if (path.includes('{processId}'))
    return ['', 'local.'].map((before) =>
      pair(
        `${before}process`,
        { sandboxId: before + owned.running, processId: owned.processId },
        { sandboxId: before + uuidV7(), processId: other(owned.processId) },
      ),
    );
  // There is none without a rule; test/http/approvals.test.ts has another's.
  if (path.includes('{approvalId}'))
    return [pair('approval', { approvalId: uuidV7() }, { approvalId: uuidV7() })];
  if (path.includes('{sandboxId}'))
    return (['running', 'idle', 'finished'] as const).flatMap((kind) =>
      both(kind, 'sandboxId', owned[kind], uuidV7(), 'local.'),
    );
  if (path.startsWith('/sandboxpools/{name}'))
    return both('pool', 'name', owned.pool, other(owned.pool), 'local::');
  if (path.includes('{groupName}'))
    return [
      pair(
        'group',
        { name: owned.env, groupName: owned.member },
        { name: other(owned.env), groupName: other(owned.member) },
      ),
    ];
  if (path.startsWith('/envs/{name}/sandboxpools/{pool}')) {
    return ['', 'local::'].map((before) =>
      pair(
        `${before}member`,
        { name: owned.env, pool: before + owned.member },
        { name: other(owned.env), pool: before + other(owned.member) },
      ),
    );
  }
  if (path.startsWith('/envs/{name}'))
    return [pair('env', { name: owned.env }, { name: other(owned.env) })];
  if (path.includes('{keyId}'))
    return [pair('key', { keyId: owned.keyId }, { keyId: other(owned.keyId) })];
  if (path.startsWith('/admin/api-keys/{name}'))
    return [
      pair('key', { name: owned.keyName }, { name: `${keyNamespace}/${other(shortName)}` }),
      pair('short', { name: shortName }, { name: other(shortName) }),
    ];
  if (path.includes('{shortName}'))
    return [
      pair(
        'key',
        { namespace: keyNamespace, shortName },
        { namespace: keyNamespace, shortName: other(shortName) },
      ),
    ];
  if (path.startsWith('/admin/sandbox-templates/{name}'))
    return [pair('template', { name: 'default' }, { name: other('default') })];
  if (path.startsWith('/admin/quotas/{team}/{user}')) return [pair('user', {}, {})];
  if (path.startsWith('/debug/machines/{kind}'))
    return [pair('machine', { kind: 'sandbox' }, { kind: other('sandbox') })];
  if (path.startsWith('/debug/actors/{kind}/{key}'))
    return [
      pair('actor', { kind: 'sandbox', key: owned.running }, { kind: 'sandbox', key: uuidV7() }),
    ];
  if (parametersOf(documented).length === 0) return [pair('nothing', {}, {})];
  throw new Error(`the matrix knows no ids for ${path}`);
};

/** As long as it is, and nobody's. */
const other = (name: string): string => {
  const random = randomBytes(name.length).toString('hex');
  return name.length < 12
    ? `x${random}`.slice(0, name.length)
    : name.slice(0, -10) + random.slice(0, 10);
};

const send = (
  ask: () => HttpClient,
  { method, target, headers, raw }: GeneratedRequest,
  ids: Ids,
): Promise<HttpAnswer> => {
  const path = target.replaceAll(PLACEHOLDER, (_, parameter: string) =>
    encodeURIComponent(ids[parameter] ?? ''),
  );
  const body = raw?.includes('zz')
    ? Buffer.from(
        raw
          .toString('latin1')
          .replaceAll(PLACEHOLDER, (whole, parameter: string) => ids[parameter] ?? whole),
        'latin1',
      )
    : raw;
  return ask().send(method, path, body === undefined ? { headers } : { headers, raw: body });
};

/** The answer to both; fails where they differ in anything but the id that was sent. */
const expectSame = async (
  ask: () => HttpClient,
  request: GeneratedRequest,
  { what, foreign, unknown }: Pair,
): Promise<HttpAnswer> => {
  const [theirs, nobodys] = [await send(ask, request, foreign), await send(ask, request, unknown)];
  const seen = (answer: HttpAnswer, ids: Ids) => ({
    status: answer.status,
    body: withoutIds(answer.text, ids),
    headers: shownHeaders(answer, ids),
  });
  expect(
    seen(theirs, foreign),
    `MATRIX_SEED=${SEED} ${request.method} ${request.target} ${what} ${String(request.raw)}`,
  ).to.deep.equal(seen(nobodys, unknown));
  return theirs;
};

const OF_EACH: ReadonlySet<string> = new Set(['date', 'x-request-id']);

const shownHeaders = (
  { headers }: Pick<HttpAnswer, 'headers'>,
  ids: Ids,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([header]) => !OF_EACH.has(header))
      .map(([header, value]) => [header, withoutIds(value, ids)]),
  );

/**
 * An answer may hold what was sent, with or without its cluster; the longest first, as one may hold
 * another.
 */
const withoutIds = (text: string, ids: Ids): string =>
  Object.values(ids)
    .flatMap((id) => [id, id.replace(/^local::/, '')])
    .sort((a, b) => b.length - a.length)
    .reduce(
      (rest, id) => rest.replaceAll(encodeURIComponent(id), '{id}').replaceAll(id, '{id}'),
      text,
    );
