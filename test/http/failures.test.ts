import { expect } from 'chai';
import { RecordExists } from '../../src/contracts/record-store.ts';
import {
  DefinitionRefused,
  InstanceGone,
  LeaseLost,
  LogsGone,
  NoPlace,
  NotJoinable,
  OutcomeUnknown,
  PortUnreachable,
  RecordConflict,
} from '../../src/contracts/sandbox-driver.ts';
import { ApiUnreachable, NotSent, refusedBy } from '../../src/k8s/api/api-errors.ts';
import { unavailable } from '../../src/model/refusals.ts';
import {
  documentedOperations,
  type DocumentedOperation,
} from '../support/harness/documented-answers.ts';
import { anEngine, type Engine } from '../support/harness/engine-operations.ts';
import {
  requestsTo,
  type GeneratedRequest,
  type Known,
} from '../support/builders/generated-requests.ts';
import { aServer, type TestServer } from './a-server.ts';
import { aSession } from './an-approving-server.ts';

const statusObject = (status: number, reason: string): string =>
  JSON.stringify({
    kind: 'Status',
    status: 'Failure',
    reason,
    code: status,
    message: `user "sandpool" ${reason}`,
  });

/** Every class of failure that a driver, a store or coordination may reject with. */
const FAILURES: Readonly<Record<string, Error>> = {
  NotSent: new NotSent('connect ECONNREFUSED 10.0.0.1:6443'),
  'NotSent of a crowded lane': new NotSent('4096 requests wait for a connection already'),
  ApiUnreachable: new ApiUnreachable('GET /api/v1/pods: no answer from 10.0.0.1'),
  ...Object.fromEntries(
    (
      [
        [400, 'BadRequest'],
        [401, 'Unauthorized'],
        [403, 'Forbidden'],
        [404, 'NotFound'],
        [409, 'Conflict'],
        [410, 'Expired'],
        [413, ''],
        [422, 'Invalid'],
        [429, 'TooManyRequests'],
        [500, 'InternalError'],
        [503, 'ServiceUnavailable'],
      ] as const
    ).map(([status, reason]) => [
      `ApiRefused ${status}`,
      refusedBy(status, statusObject(status, reason), '2'),
    ]),
  ),
  OutcomeUnknown: new OutcomeUnknown('no answer from 10.0.0.1'),
  RecordConflict: new RecordConflict('it moved'),
  RecordExists: new RecordExists('there is one'),
  LeaseLost: new LeaseLost('another leads'),
  NoPlace: new NoPlace('no node has room'),
  DefinitionRefused: new DefinitionRefused('spec.network: no'),
  NotJoinable: new NotJoinable('not yet'),
  InstanceGone: new InstanceGone('its Pod is gone'),
  LogsGone: new LogsGone('not kept'),
  PortUnreachable: new PortUnreachable('refused'),
  'Redis away': unavailable(
    'Redis, which the replicas share, cannot be reached; try again shortly',
  ),
};

/** What every request asks for first, or what asks nobody else. */
const WORKING: ReadonlySet<PropertyKey> = new Set([
  'authenticate',
  'authenticateAfresh',
  'followKey',
  'readiness',
  'clock',
  'requests',
  'key',
  'pendingClaim',
]);

const ASKS_NOBODY: ReadonlySet<string> = new Set(['getHealth', 'getReadiness']);

/** Operations that reject with the failure; `asked`: which were. */
const failing = (
  operations: Engine,
): {
  readonly operations: Engine;
  readonly asked: Set<string>;
  failure: Error | undefined;
} => {
  const under: { operations: Engine; asked: Set<string>; failure: Error | undefined } = {
    operations,
    asked: new Set(),
    failure: undefined,
  };
  under.operations = new Proxy(operations, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        if (!under.failure || WORKING.has(name))
          return Reflect.apply(value, target, args) as unknown;
        under.asked.add(String(name));
        throw under.failure;
      };
    },
  });
  return under;
};

const TEMPLATE = JSON.stringify({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: 'shells' },
  spec: { containers: [{ name: 'main', image: 'host' }] },
});

const KNOWN: Known = {
  path: {
    sandboxId: ['0190d4a5-7b1e-7c3a-9f00-1234567890ab'],
    name: ['shells'],
    keyId: ['k'.repeat(16)],
    namespace: ['team-blue'],
    shortName: ['s'],
    pool: ['shells'],
    groupName: ['shells'],
    kind: ['sandbox'],
    key: ['k'],
    team: ['blue'],
    user: ['ada'],
    approvalId: ['0190d4a5-7b1e-7c3a-9f00-1234567890ab'],
  },
  fields: {
    poolName: ['shells'],
    templateName: ['default'],
    templateRef: [{ name: 'default' }],
    idleTimeout: ['30m'],
    crdJson: [TEMPLATE],
    expiresAt: ['2026-09-01T00:00:00Z'],
    path: ['/tmp/a'],
    from: ['/tmp/a'],
    to: ['/tmp/b'],
    clusterID: ['local'],
  },
};

/** Makes requests that may well get as far as what carries the operation out. */
function* requestsOf(operation: DocumentedOperation): Generator<GeneratedRequest> {
  for (let seed = 1; seed <= 10; seed++) {
    for (const request of requestsTo(operation, KNOWN, { seed, count: 20 }))
      if (request.kind === 'valid') yield request;
  }
}

describe('a failure below the operations', function () {
  const under = failing(anEngine());
  let server: TestServer;
  /** Of each operation of the document, one request that reaches what carries it out. */
  const reaching = new Map<DocumentedOperation, GeneratedRequest>();
  const send = ({ method, target, headers, raw }: GeneratedRequest) =>
    (/\/decision(\?|$)/.test(target) ? server.anyone : server.admin).send(method, target, {
      headers,
      raw,
    });

  before(async () => {
    // Whoever sends no key is an operator at the console.
    server = await aServer({
      operations: under.operations,
      sessionOf: ({ headers }) => (headers['service-api-key'] ? undefined : aSession()),
    });
    under.failure = unavailable('reached');
    for (const operation of documentedOperations) {
      if (ASKS_NOBODY.has(String(operation.operation['operationId']))) continue;
      for (const request of requestsOf(operation)) {
        under.asked.clear();
        await send(request);
        if (under.asked.size === 0) continue;
        reaching.set(operation, request);
        break;
      }
    }
  });
  after(() => server.stop());

  it('can occur in every operation with a backend', () => {
    const missed = documentedOperations
      .filter((operation) => !reaching.has(operation))
      .map(({ operation }) => operation['operationId']);

    expect(missed).to.have.members([...ASKS_NOBODY]);
  });

  for (const [name, failure] of Object.entries(FAILURES)) {
    it(`causes a 503 without server details in every operation: ${name}`, async () => {
      under.failure = failure;
      for (const [{ operation }, request] of reaching) {
        const answer = await send(request);

        expect(
          [answer.status, answer.json.errorCode],
          String(operation['operationId']),
        ).to.deep.equal([503, 'UNAVAILABLE']);
        expect(answer.headers['retry-after']).to.match(/^[1-9]/);
        expect(answer.text).not.to.match(/10\.0\.0\.1|user \\"sandpool/);
      }
    });
  }

  it('of the daemon itself causes a 500', async () => {
    under.failure = new Error('a bug');
    for (const [, request] of reaching) expect((await send(request)).status).to.equal(500);
  });
});
