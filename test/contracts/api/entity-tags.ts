import { expect } from 'chai';
import { eventually } from '../../support/harness/eventually.ts';
import type { HttpAnswer } from '../../support/harness/http-client.ts';
import { aTenantOf, type Belongings, belongingsOf, type Tenant } from './belongings.ts';
import { Clients, type RunningService } from './running-service.ts';

/** How long nothing that has a tag may move while nobody uses it. */
const QUIET_MS = 10_000;

type Names = Readonly<Record<string, string>>;
interface Row {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
}
interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly headers?: Readonly<Record<string, unknown>> }>
  >;
}

/** A good body of each operation that heeds `If-Match`. */
const bodiesOf = (template: string): Readonly<Record<string, object>> => ({
  updatePool: {},
  setIdleTimeout: { idleTimeout: '5m' },
  updateTemplate: { description: 'stale' },
  replaceEnv: { templateRef: { name: template } },
  patchEnv: {},
  updateMember: {},
  updateGroup: {},
});

/**
 * Each operation with an `ETag` in the daemon's own OpenAPI document keeps what RFC 9110 sections
 * 8.8.3 and 13.1 say of one.
 */
export const entityTagsSuite = (name: string, service: () => RunningService): void => {
  describe(`operations with an ETag: ${name}`, function () {
    const clients = new Clients(service);
    let tenant: Tenant;
    let rows: readonly Row[];
    let bodies: Readonly<Record<string, object>>;
    let pathOf: (row: Row) => string;

    before(async () => {
      tenant = await aTenantOf(service(), clients, 'tagged');
      const belongings = await belongingsOf(service(), tenant);
      const { env } = JSON.parse((await tenant.ask().get(`/envs/${belongings.env}`)).text) as {
        readonly env: { readonly spec: { readonly templateRef: { readonly name: string } } };
      };
      const template = env.spec.templateRef.name;
      [bodies, pathOf] = [bodiesOf(template), pathsOf(belongings, template)];
      rows = taggedIn((await clients.anyone.get('/openapi.json')).text);
    });
    after(() => {
      clients.close();
    });

    const reads = (): readonly Row[] => rows.filter(({ method }) => method === 'get');
    const changes = (): readonly Row[] => rows.filter(({ method }) => method !== 'get');
    const send = (row: Row, named: Names): Promise<HttpAnswer> => {
      const headers = { ...named, Host: 'sandpool.test' }; // links lead where the client asked
      const client = row.path.startsWith('/admin/') ? clients.admin : tenant.ask();
      return client.send(
        row.method.toUpperCase(),
        pathOf(row),
        row.method === 'get' ? { headers } : { headers, body: bodies[row.operationId] },
      );
    };

    it('are all covered by this suite', () => {
      expect(reads()).to.have.length.above(4);
      expect(changes().map(({ operationId }) => operationId)).to.have.members(Object.keys(bodies));
    });

    it(`answer 304 on every replica during ${QUIET_MS / 1_000} s without a change`, async () => {
      const tags = new Map<Row, string>();
      const texts = new Map<Row, string>();
      const moved = async (): Promise<readonly string[]> =>
        (
          await Promise.all(
            reads().map(async (row) => {
              const { status, headers, text } = await send(row, {
                'If-None-Match': tags.get(row) ?? '"none"',
              });
              if (status === 304) return text === '' ? [] : [`${row.operationId}: a body with 304`];
              tags.set(row, headers['etag'] ?? `no ETag: ${text}`);
              const before = texts.get(row);
              texts.set(row, text);
              return [`${row.operationId}: ${status} ${text}, before ${before}`];
            }),
          )
        ).flat();
      let [quietSince, last]: [number, readonly string[]] = [performance.now(), []];
      const isQuiet = async (): Promise<boolean> => {
        const now = await moved();
        if (now.length > 0) [quietSince, last] = [performance.now(), now];
        return performance.now() - quietSince >= QUIET_MS;
      };
      await eventually(isQuiet, 'nothing moves', () => last);
    });

    it('refuse a change with 412 if the tag is of another revision', async () => {
      const answers = await Promise.all(
        changes().map(async (row) => {
          const { status, json } = await send(row, { 'If-Match': '"stale-0123456789abcdef"' });
          return [row.operationId, status, json.errorCode];
        }),
      );
      expect(answers).to.deep.equal(
        changes().map(({ operationId }) => [operationId, 412, 'PRECONDITION_FAILED']),
      );
    });
  });
};

const taggedIn = (document: string): readonly Row[] => {
  const { paths } = JSON.parse(document) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation.responses['200']?.headers?.['ETag'] !== undefined)
      .map(([method, { operationId }]) => ({ operationId, method, path })),
  );
};

const pathsOf =
  ({ pool, env, member, running }: Belongings, template: string) =>
  ({ path }: Row): string => {
    const name = path.startsWith('/envs/')
      ? env
      : path.startsWith('/sandboxpools/')
        ? pool
        : template;
    const names: Names = { name, pool: member, groupName: member, sandboxId: running };
    return path.replaceAll(/\{(\w+)\}/g, (_, each: string) => names[each] ?? `no-such-${each}`);
  };
