import { expect } from 'chai';
import fc from 'fast-check';
import { request } from 'node:http';
import { controlRoutes, type ControlDeps } from '../../src/http/e2b/control/routes.ts';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { runs } from '../support/harness/runs.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

const FOR_SANDBOXES = [
  ...['/health', '/files', '/', '/execute'],
  ...['Start', 'Connect', 'List', 'SendInput', 'Update'].map((call) => `/process.Process/${call}`),
  ...['Stat', 'ListDir', 'WatchDir', 'CreateWatcher'].map(
    (call) => `/filesystem.Filesystem/${call}`,
  ),
];
const CONTROL = controlRoutes({} as ControlDeps).map(({ path }) => path);

describe('a random request to the compatible API', function () {
  let api: CompatibleApi;
  let sandbox: Readonly<Record<string, string>>;
  before(async () => {
    api = await aCompatibleApi();
    const made = await fetch(`${api.url}/v2/sandboxes`, {
      method: 'POST',
      headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
      body: JSON.stringify({ templateID: 'base' }),
    });
    sandbox = (await made.json()) as Record<string, string>;
  });
  after(() => api.stop());

  /** Resolves with the status, and leaves what else is answered. */
  const statusOf = ({ method, path, headers, body }: Asked): Promise<number> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(api.url);
      const asked = request(
        {
          ...{ hostname, port, path: path || '/', method, agent: false, timeout: NEVER_COMES_MS },
          headers: { ...headers, ...lengthOf(body) },
        },
        (answer) => {
          resolve(answer.statusCode ?? 0);
          asked.destroy();
        },
      );
      asked.on('timeout', () => asked.destroy(new Error('there was no answer')));
      asked.on('error', reject);
      asked.end(body);
    });

  const id = fc.oneof(
    fc.constant('own'),
    fc.constantFrom('0'.repeat(32), 'x', '%00', '..', '%ff', 'x'.repeat(58)),
    fc.uuid(),
  );
  const path = fc
    .tuple(
      fc.oneof(fc.constantFrom(...CONTROL, ...FOR_SANDBOXES), fc.webPath()),
      id,
      fc.option(fc.webQueryParameters(), { nil: undefined }),
    )
    .map(([place, named, query]) => {
      const whole = place.replace('{sandboxId}', named);
      return query === undefined ? whole : `${whole}?${query}`;
    });
  const field = fc.constantFrom(
    ...['templateID', 'timeout', 'metadata', 'envVars', 'autoPause', 'autoResume', 'network'],
    ...['memory', 'process', 'pty', 'tag', 'stdin', 'path', 'depth', 'input', 'watcherId', 'code'],
  );
  const body = fc.oneof(
    fc.constant(undefined),
    fc.uint8Array({ maxLength: 64 }),
    fc
      .dictionary(field, fc.oneof(fc.jsonValue(), fc.constantFrom('base', 60, true)))
      .map((each) => JSON.stringify(each)),
    fc.json(),
  );
  const headers = fc.record(
    {
      'X-API-KEY': fc.constantFrom('tenant', 'stranger', 'e2b_00'),
      'X-Access-Token': fc.constantFrom('access', 'traffic', 'wrong'),
      'E2B-Traffic-Access-Token': fc.constantFrom('access', 'traffic'),
      'E2b-Sandbox-Id': id,
      'E2b-Sandbox-Port': fc.constantFrom('49983', '49999', '1', '0', 'x', '99999'),
      Host: fc.constantFrom('49983-own.a.test', '1-own.a.test', '-', 'a:b', '0-.'),
      'Content-Type': fc.constantFrom(
        ...['application/json', 'application/connect+json', 'application/octet-stream'],
        ...['multipart/form-data; boundary=x', 'multipart/form-data', 'text/plain', ';'],
      ),
      'Content-Encoding': fc.constantFrom('gzip', 'br', 'identity', ''),
      'Connect-Timeout-Ms': fc.constantFrom('0', '-1', '1000000000000000', 'x'),
      'Keepalive-Ping-Interval': fc.constantFrom('0', '-1', 'x', '1e9'),
      'Idempotency-Key': fc.constantFrom('a', '', 'x'.repeat(256)),
      Authorization: fc.constantFrom('Basic cm9vdDo=', 'Basic x', 'x'),
      Expect: fc.constantFrom('100-continue', 'x'),
    },
    { requiredKeys: [] },
  );

  it('never causes a server error', async () => {
    const own = (value: string): string => {
      const named: Readonly<Record<string, string | undefined>> = {
        ...{ tenant: toCompatibleForm(api.keys.tenant), stranger: api.keys.stranger },
        ...{ access: sandbox['envdAccessToken'], traffic: sandbox['trafficAccessToken'] },
      };
      return named[value] ?? value.replace('own', sandbox['sandboxID'] ?? '');
    };
    const method = fc.constantFrom('GET', 'POST', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS');
    await fc.assert(
      fc.asyncProperty(method, path, headers, body, async (how, place, given, sent) => {
        const asked = {
          method: how,
          path: place.replace('/own', `/${sandbox['sandboxID']}`),
          headers: Object.fromEntries(
            Object.entries(given).map(([name, value]) => [name, own(value)]),
          ),
          body: sent,
        };
        const status = await statusOf(asked);
        // 501 says that there is no such operation, and 502 that a sandbox, or what listens there, is gone.
        if (status >= 500) expect(status).to.be.oneOf(isForOne(asked) ? [501, 502] : [501]);
        api.operations.clock.advance(60_000); // else wrong keys have everybody wait
      }),
      { numRuns: runs(500) },
    );
  });
});

const lengthOf = (body: Asked['body']): Readonly<Record<string, number>> =>
  body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };

const isForOne = ({ path, headers }: Asked): boolean =>
  ['E2b-Sandbox-Id', 'Host', 'X-Access-Token', 'E2B-Traffic-Access-Token'].some(
    (name) => name in headers,
  ) || FOR_SANDBOXES.some((place) => path.startsWith(place));
