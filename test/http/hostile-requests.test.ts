import { Readable } from 'node:stream';
import { v7 } from 'uuid';
import { expect } from 'chai';
import {
  type DocumentedOperation,
  documentedOperations,
} from '../support/harness/documented-answers.ts';
import {
  contradiction,
  type GeneratedRequest,
  type Known,
  requestsTo,
} from '../support/builders/generated-requests.ts';
import { Dice, mutated } from '../support/builders/hostile-values.ts';
import { FakeDebug } from '../support/fakes/fake-debug.ts';
import { anEngine } from '../support/harness/engine-operations.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { runs } from '../support/harness/runs.ts';
import { aServer, type TestServer } from './a-server.ts';

/** What 500 requests found of the faults put in on one route came within 107; the long suites try more. */
const REQUESTS_PER_ROUTE = runs(process.env['TEST_LONG'] === '1' ? 500 : 150);
/** Half of the rounds of PUT /envs/{name} have no good request. */
const MOST_ROUNDS = 20;
const AT_ONCE = 8;
const TEMPLATE = (name: string): string =>
  JSON.stringify({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'host' }] },
  });

const knownTo = ({ method, path }: DocumentedOperation, known: Known): Known =>
  method === 'PUT' && path === '/envs/{name}'
    ? { ...known, fields: { ...known.fields, name: ['shells'] } } // it can't change
    : namedAs(path, known);

/** A name in a path is a key's where keys are named so. */
const namedAs = (path: string, known: Known): Known =>
  path.startsWith('/admin/api-keys/')
    ? { ...known, path: { ...known.path, name: ['team-blue/spare-11', 'team-blue/spare-12'] } }
    : path.endsWith('/output')
      ? { ...known, path: { ...known.path, processId: [ENDED] } } // a living one's has no end
      : known;

/** Processes of the sandbox: one that has ended, and some that read their input. */
const ENDED = 'ended';
const LIVING = ['one', 'two', 'three', 'four'] as const;

/** Says what this deployment does not have, which no body of a request is the fault of. */
const NOT_HERE: ReadonlySet<string> = new Set(['CLUSTER_UNAVAILABLE', 'FEATURE_DISABLED']);

describe('random requests based on the document', function () {
  const seed = Number(process.env['HOSTILE_SEED'] ?? Date.now() % 1_000_000_000);
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
  let server: TestServer;
  let known: Known;

  before(() => {
    console.info(`    HOSTILE_SEED=${seed}`);
    process.on('unhandledRejection', onUnhandled);
  });
  after(() => {
    process.off('unhandledRejection', onUnhandled);
  });
  /** A world of its own for each operation: what its requests take away is there for the next. */
  beforeEach(async () => {
    server = await aServer({ operations: Object.assign(anEngine(), new FakeDebug()) });
    await server.makeShells(200);
    const sandboxId =
      (await server.tenant.post('/sandboxes', { poolName: 'shells' })).json.sandbox?.[
        'sandboxId'
      ] ?? '';
    const spare = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, n) =>
          (await server.tenant.post('/api-keys', { name: `spare-${n}` })).json.keyId ?? '',
      ),
    );
    await server.admin.post('/admin/sandbox-templates', { crdJson: TEMPLATE('shells') });
    await server.tenant.post('/envs', { name: 'shells', templateRef: { name: 'default' } });
    await server.tenant.post('/envs/shells/sandboxpools', { name: 'member' });
    await startProcesses(sandboxId);
    await aFile(sandboxId);
    server.operations.managers.push('wss://hub.example.com');
    const { id: approvalId } = await server.operations.records.approvals.create({
      id: v7(),
      principal: {
        namespace: 'team-blue',
        team: 'blue',
        user: 'ada',
        keyId: 'AbCdEfGhIjKl',
        role: 'user',
        persons: ['ada'],
      },
      operation: 'deletePool',
      onceOnly: true,
      method: 'DELETE',
      path: '/sandboxpools/web',
      route: 'REST DELETE /sandboxpools/{poolName}',
      namespace: 'team-blue',
      query: '',
      headers: {},
      summary: 'Delete a pool',
      binding: 'b',
      createdAt: server.operations.clock.now(),
      expiresAt: server.operations.clock.now() + 900_000,
      status: 'pending',
    });
    known = {
      path: {
        approvalId: [approvalId],
        sandboxId: [sandboxId, `local.${sandboxId}`],
        processId: LIVING,
        name: ['shells', 'local::shells'],
        keyId: ['none', ...spare.slice(0, 10)],
        namespace: ['team-blue'],
        shortName: ['spare-13', 'spare-14'],
        pool: ['member', 'local::member'],
        groupName: ['member'],
        kind: ['sandbox', 'pool'],
        key: ['k', 'shells'],
      },
      fields: {
        namespace: ['team-blue'],
        poolName: ['shells', 'local::shells'],
        container: ['main'],
        templateName: ['default'],
        templateRef: [{ name: 'default' }],
        crdJson: [TEMPLATE('shells'), TEMPLATE('another')],
        expiresAt: ['2026-09-01T00:00:00Z', '2026-03-02T00:00:00.5Z'],
        path: ['/tmp', '/tmp/file', '/tmp/another'],
        from: ['/tmp/file'],
        to: ['/tmp/moved'],
      },
    };
  });
  afterEach(async () => {
    await server.stop();
    expect(unhandled).to.deep.equal([]);
    expect(server.log.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });

  const startProcesses = async (sandboxId: string): Promise<void> => {
    const { processes } = server.operations.driver;
    for (const processId of [ENDED, ...LIVING])
      await processes.start(sandboxId, {
        processId,
        tenant: 'team-blue',
        argv: [processId === ENDED ? 'echo' : 'cat'],
        stdin: true,
        tty: processId === LIVING[0] ? { cols: 80, rows: 24 } : undefined,
      });
  };

  const aFile = async (id: string): Promise<void> => {
    for (const path of ['/tmp', '/tmp/file']) {
      const place = { id, path: Buffer.from(path) };
      const { files } = server.operations.driver;
      const request = { content: Readable.from(['x']), overwrite: true, parents: true };
      const { signal } = new AbortController();
      const made =
        path === '/tmp'
          ? files.mkdir(place, { parents: true }, signal)
          : files.write(place, request, signal);
      await made.catch(() => undefined);
    }
  };

  const sendAll = async (
    operation: DocumentedOperation,
    requests: readonly GeneratedRequest[],
  ): Promise<number> => {
    let next = 0;
    let good = 0;
    const worker = async (): Promise<void> => {
      for (let request = requests[next++]; request; request = requests[next++]) {
        const { method, target, headers, raw } = request;
        const client =
          /^\/admin\/|[?&]namespace=/.test(target) || next % 4 === 0 ? server.admin : server.tenant;
        if (next % 10 === 0) await aFile(known.path['sandboxId']?.[0] ?? '');
        try {
          const answer = await client.send(
            method,
            target,
            raw === undefined ? { headers } : { raw, headers },
          );
          if (!NOT_HERE.has(answer.json.errorCode ?? ''))
            expect(answer.status, answer.text).to.be.within(200, 499);
          expect(contradiction(operation, request, answer)).to.equal(undefined);
          if (answer.status < 400) good += 1;
        } catch (error) {
          throw new Error(`with HOSTILE_SEED=${seed}: ${method} ${target}: ${String(error)}`, {
            cause: error,
          });
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    return good;
  };

  for (const [place, documented] of documentedOperations.entries()) {
    it(`${REQUESTS_PER_ROUTE} to ${documented.method} ${documented.path} get documented answers`, async () => {
      const round = (n: number): Promise<number> =>
        sendAll(
          documented,
          requestsTo(documented, knownTo(documented, known), {
            seed: seed + place + 1_000 * n,
            count: REQUESTS_PER_ROUTE,
          }),
        );
      let good = await round(0);
      // of an operation that asks much of its body there may be none among a few
      for (let n = 1; good === 0 && n < MOST_ROUNDS; n += 1) good = await round(n);
      // no worker is connected, and nobody is logged in
      if (!/\/(promote|decision)$/.test(documented.path))
        expect(good, 'some are good').to.be.greaterThan(0);
    });
  }

  it('with mutated bytes on 500 connections cause no harm', async () => {
    const dice = new Dice(seed + 1_000);
    const body = '{"poolName":"shells"}';
    const start = Buffer.from(
      `POST /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: k\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    for (let n = 0; n < 500; n += 1) {
      const connection = await connectRaw(server.port);
      connection.socket.end(
        mutated(dice, dice.chance(0.5) ? start : Buffer.concat([start, start])),
      );
      const text = await connection.closed();
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d+)/g))
        expect(Number(status), `HOSTILE_SEED=${seed}: ${text}`).to.be.below(500);
    }
    expect((await server.anyone.get('/healthz')).status).to.equal(200);
  });
});
