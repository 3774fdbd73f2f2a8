import { expect } from 'chai';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { SDKS, type SdkOptions, type SdkSandbox } from '../e2b/a-sdk.ts';
import { checksOf, pythonWithPackages } from '../e2b/python/packages.ts';
import { SERVICE_STEPS } from '../e2b/service-steps.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient, type HttpAnswer } from '../support/harness/http-client.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { onReplicas } from '../support/cluster/on-replicas.ts';
import { realTemplate } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';

/** Keeps its connections, as most servers do. */
const SERVER = `
import http.server, os
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
os.makedirs("/tmp/www", exist_ok=True)
os.chdir("/tmp/www")
open("index.html", "w").write("hello")
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()`;
const EATS = 'while [ ! -e /tmp/eat ]; do sleep 0.1; done; exec python3 -c "bytearray(300000000)"';

const TEMPLATES = [
  realTemplate('site', ['python3', '-c', SERVER], { endpoints: [{ name: 'web', port: 8_000 }] }),
  realTemplate('hungry', ['bash', '-c', EATS]),
];

/** Need no home that can be written to, which the image has none of. */
const STEPS = [
  'runs commands, and says how they ended',
  'comes back to a command that it left, gives it input, and kills it once',
  'has a terminal, and changes its size',
  'says that a silent command is alive',
] as const;

/** Leaves out what takes such a home, a pause, and changes of files between two looks. */
const PYTHON_CHECKS = ['commands', 'files', 'host', 'life', 'links', 'processes', 'terminal'];

describe('a replica with a real node', function () {
  const cluster = onTheRealNode();
  const replicas = onReplicas(cluster, {
    count: 1,
    env: {
      SANDPOOL_COMPATIBLE_API_LISTEN: '127.0.0.1:0',
      SANDPOOL_COMPATIBLE_API_TEMPLATES: 'base=site',
    },
  });
  let client: HttpClient;

  before(async () => {
    for (const each of TEMPLATES) await cluster().apply(each);
    client = new HttpClient(replicas().replica(0).port, await replicas().tenant('tenant', 'alice'));
    for (const [name, count] of Object.entries({ site: 5, hungry: 3 })) await pool(name, count);
  });
  after(() => client.close());

  const pool = (name: string, count: number): Promise<void> =>
    eventually(
      async () =>
        (await client.post('/sandboxpools', { name, templateName: name, replicas: count }))
          .status === 201,
      `the pool ${name} is made`,
    );

  const claimed = async (poolName: string): Promise<string> => {
    const { json } = await until(
      () => client.post('/sandboxes', { poolName }),
      ({ status }) => status === 201,
      `one of ${poolName} is claimed`,
    );
    return String(json.sandbox?.['sandboxId']);
  };
  /** Asks until an answer is as wanted; an error shows the last one. */
  const until = async (
    ask: () => Promise<HttpAnswer>,
    isSo: (answer: HttpAnswer) => boolean,
    what: string,
  ): Promise<HttpAnswer> => {
    let last: HttpAnswer | undefined;
    await eventually(async () => isSo((last = await ask())), what).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${last?.status} ${last?.text}`);
    });
    if (!last) throw new Error(what);
    return last;
  };
  const exec = (id: string, command: string): Promise<HttpAnswer> =>
    client.post(`/sandboxes/${id}/exec`, { command });

  describe("serves E2B's SDK in a sandbox, as one machine does, so that it", () => {
    const Sandbox = [...SDKS.values()].at(-1)!; // there are four
    let options: SdkOptions;
    let sandbox: SdkSandbox;
    before(async () => {
      const { dataDir } = replicas().replica(0);
      const url = readPidFile(dataDir)?.compatibleAddress ?? '';
      const key = await replicas().tenant('tenant', 'alice');
      options = { apiKey: toCompatibleForm(key), apiUrl: url, sandboxUrl: url };
      const envs = { OF_CLAIM: 'claim' };
      let refused: unknown;
      await eventually(
        () =>
          Sandbox.create('base', { ...options, timeoutMs: 600_000, envs }).then(
            (made) => {
              sandbox = made;
              return true;
            },
            (error: unknown) => {
              refused = error;
              return false;
            },
          ),
        'a sandbox is created',
      ).catch((error: unknown) => {
        throw new Error(String(error), { cause: refused });
      });
    });
    after(() => sandbox.kill());

    for (const title of STEPS) it(title, () => SERVICE_STEPS[title]({ Sandbox, options, sandbox }));

    it('writes, reads, lists, moves and removes files', async () => {
      const { files } = sandbox;
      const large = 'large '.repeat(100_000);
      await files.write('/tmp/new/é.txt', 'content');
      await files.write('/tmp/new/large', new Blob([large]).stream());
      expect(await files.read('/tmp/new/é.txt')).to.equal('content');
      expect(await files.read('/tmp/new/large')).to.equal(large);
      expect((await files.list('/tmp/new')).map(({ name }) => name)).to.deep.equal([
        'large',
        'é.txt',
      ]);
      expect(await files.rename('/tmp/new/large', '/tmp/moved')).to.include({ name: 'moved' });
      await files.remove('/tmp/new');
      expect([await files.exists('/tmp/new'), await files.exists('/tmp/moved')]) //
        .to.deep.equal([false, true]);
    });

    it('has the same results for Python', async function () {
      const python = pythonWithPackages();
      if ('why' in python) return skipBecause(this, python.why);
      const env = {
        E2B_API_KEY: options.apiKey,
        E2B_API_URL: options.apiUrl,
        E2B_SANDBOX_URL: options.sandboxUrl,
      };
      const given = { env, silentS: 0, checks: PYTHON_CHECKS };
      const checks = await checksOf(python.path, 'sync', given);

      expect(checks.filter(({ why }) => why !== null)).to.deep.equal([]);
      expect(checks.map(({ check }) => check).toSorted()).to.deep.equal(PYTHON_CHECKS);
    });
  });

  it('reaches the server in a sandbox repeatedly, even if it keeps its connections', async () => {
    const id = await claimed('site');
    const page = (): Promise<HttpAnswer> => client.get(`/sandboxes/${id}/endpoints/web/`);
    await eventually(async () => (await page()).status === 200, 'the server listens');
    for (let round = 0; round < 5; round += 1) {
      const answers = await Promise.all(Array.from({ length: 20 }, page));
      expect(answers.map(({ status, text }) => `${status} ${text}`)).to.deep.equal(
        Array.from({ length: 20 }, () => '200 hello'),
      );
    }
    expect((await exec(id, 'cat /tmp/www/index.html')).json.stdout).to.equal('hello');
    expect((await client.delete(`/sandboxes/${id}`)).status).to.equal(200);
  });

  it('never reports a running sandbox as ended during a restart of the kubelet', async () => {
    const id = await claimed('site');
    await cluster().realNode.kill('kubelet');
    const seen = new Set<number>([(await exec(id, 'echo there')).status]);
    await cluster().realNode.begin('kubelet');
    await eventually(async () => {
      const { status } = await exec(id, 'echo there');
      seen.add(status);
      return status === 200;
    }, 'a command runs again');
    expect([...seen].filter((status) => status !== 200 && status !== 503)).to.deep.equal([]);
    expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.deep.include({
      status: 'Running',
    });
  });

  it('returns 503 or the complete output for a command during a restart of containerd', async () => {
    const id = await claimed('site');
    const running = exec(id, 'echo begun; touch /tmp/begun; sleep 4; echo done');
    await eventually(
      async () => (await exec(id, 'ls /tmp')).json.stdout?.includes('begun') === true,
      'it runs',
    );
    await cluster().realNode.kill('containerd');
    await cluster().realNode.begin('containerd');
    const { status, json } = await running;
    expect([`200 begun\ndone\n`, '503 undefined']).to.include(`${status} ${json.stdout}`);
    await eventually(
      async () => (await exec(id, 'echo there')).status === 200,
      'a command runs again',
    );
  });

  it('distinguishes a command out of memory from a sandbox out of memory', async () => {
    const id = await claimed('hungry');
    const { json } = await exec(id, 'python3 -c "bytearray(300000000)"');
    expect(json).to.deep.include({ exitCode: 137 });
    expect((await client.get(`/sandboxes/${id}`)).json.sandbox).to.deep.include({
      status: 'Running',
    });

    await exec(id, 'touch /tmp/eat');
    await until(
      () => client.get(`/sandboxes/${id}/events`),
      ({ text }) => text.includes('oom-killed'),
      'an event says why it ended',
    );
  });
});
