import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { documentedOperations } from '../support/harness/documented-answers.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { claim, run, stocked } from '../support/harness/on-a-daemon.ts';
import { aTenantWithPool, onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

const CONTENT = 'of the host, readable to all';

/** One try of an operation at a path; `at` is the sandbox's own. */
type Try = (client: HttpClient, at: string, path: string) => Promise<HttpAnswer>;

const asked = (path: string): string => `path=${encodeURIComponent(path)}`;
const started = (client: HttpClient, at: string, body: object): Promise<HttpAnswer> =>
  client.post(`${at}/processes`, body);
/** The path in the place of an id. */
const named =
  (method: string, rest = '', body?: object): Try =>
  (client, at, path) =>
    client.send(method, `${at}/processes/${encodeURIComponent(path)}${rest}`, { body });

/** How each operation is tried; one that is not here is a fault of this test. */
const TRIES: Readonly<Record<string, Try>> = {
  readFile: (client, at, path) => client.get(`${at}/files?${asked(path)}`),
  writeFile: (client, at, path) =>
    client.put(`${at}/files?${asked(path)}`, undefined, {
      raw: 'x',
      headers: { 'Content-Type': 'application/octet-stream' },
    }),
  removeFile: (client, at, path) => client.delete(`${at}/files?${asked(path)}&recursive=true`),
  listFiles: (client, at, path) => client.get(`${at}/files/list?${asked(path)}`),
  moveFile: (client, at, path) => client.post(`${at}/files/move`, { from: path, to: '/tmp/got' }),
  makeFolder: (client, at, path) => client.post(`${at}/files/mkdir`, { path: `${path}/below` }),
  watchFiles: (client, at, path) => client.get(`${at}/files/watch?${asked(path)}`),
  startProcess: (client, at, path) => started(client, at, { command: ['true'], cwd: path }),
  listProcesses: (client, at, path) =>
    client.get(`${at}${encodeURIComponent(`/..${path}`)}/processes`),
  getProcess: named('GET'),
  followProcess: named('GET', '/output'),
  writeToProcess: named('POST', '/stdin', { data: 'x' }),
  signalProcess: named('POST', '/signal', { signal: 'TERM' }),
  resizeProcess: named('POST', '/resize', { cols: 80, rows: 24 }),
  deleteProcess: named('DELETE'),
  setSandboxState: (client, at, path) =>
    client.put(`${at}${encodeURIComponent(`/..${path}`)}/state`, { state: 'running' }),
};

describe('escapes from a sandbox by its files, processes and state', function () {
  /** A folder of the host that everyone may read and write, but no sandbox sees. */
  const open = mkdtempSync(join(tmpdir(), 'sandpool-open-'));
  const daemon = onTheSharedDaemon();
  let client: HttpClient;
  let at: string;

  before(async () => {
    writeFileSync(join(open, 'file'), CONTENT);
    chmodSync(open, 0o777);
    client = await aTenantWithPool(daemon(), 'escaping', 1);
    await stocked(client, 1);
    const id = await claim(client);
    at = `/sandboxes/${id}`;
    await run(
      client,
      id,
      `ln -s ${open} /tmp/folder; ln -s ${open}/file /tmp/link; ln -s /proc/1/root /tmp/root`,
    );
  });
  after(() => rmSync(open, { recursive: true }));

  it('are tried with each operation', () => {
    const operations = documentedOperations
      .filter(({ path }) => /^\/sandboxes\/\{sandboxId\}\/(?:files|processes|state)\b/.test(path))
      .map(({ operation }) => String(operation['operationId']));

    expect(Object.keys(TRIES).sort()).to.deep.equal(operations.sort());
  });

  for (const [operation, attempt] of Object.entries(TRIES))
    it(`fail with ${operation}`, async () => {
      const { dataDir } = daemon();
      for (const path of [
        `${open}/file`,
        '/tmp/folder/file',
        '/tmp/link/file',
        `/tmp/root${open}/file`,
        `/proc/self/root${open}/file`,
        `/tmp/../..${open}/file`,
        join(dataDir, 'keys', 'tenant.key'),
        `/proc/self/root${dataDir}`,
      ]) {
        const { status, text } = await attempt(client, at, path);
        expect(status, `${path}: ${text}`).to.be.within(400, 499);
        expect(text, path).to.not.include(CONTENT);
      }

      expect(readdirSync(open)).to.deep.equal(['file']);
      expect(readFileSync(join(open, 'file'), 'utf8')).to.equal(CONTENT);
      expect(existsSync(join(dataDir, 'keys', 'tenant.key'))).to.equal(true);
      expect((await client.get('/readyz')).status).to.equal(200);
    });
});
