import { expect } from 'chai';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { anAuthority } from '../e2b/an-authority.ts';
import { checksOf, printedBy, pythonWithPackages } from '../e2b/python/packages.ts';
import { impatientWay, wayOfNames } from '../e2b/ways.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { skipBecause } from '../support/harness/skip-because.ts';

const INTERPRETER = 'code-interpreter-v1';
/** Longer than what stands between lets a connection be silent. */
const SILENT_S = 15;
const CHECKS = [
  ...['code', 'commands', 'contexts', 'expiry', 'files', 'home', 'host', 'life', 'links'],
  ...['pause', 'processes', 'terminal', 'watching'],
];

describe("E2B's unmodified Python packages on a daemon", function () {
  let daemon: DaemonUnderTest;
  let python: string;
  let url: string;
  let key: string;
  /** Takes the longest, and little but waits: it goes on beside the others. */
  let byTwoPorts: Promise<void>;

  before(async function () {
    const found = pythonWithPackages();
    if ('why' in found) return skipBecause(this, found.why);
    if (!existsSync('/usr/bin/python3')) return skipBecause(this, 'there is no /usr/bin/python3');
    python = found.path;
    daemon = await DaemonUnderTest.start(['--compatible-api-listen', '127.0.0.1:0']);
    url = readPidFile(daemon.dataDir)?.compatibleAddress ?? '';
    key = toCompatibleForm(daemon.tenantKey);
    const tenant = daemon.client();
    const pool = { name: INTERPRETER, templateName: INTERPRETER, replicas: 4 };
    await tenant.post('/sandboxpools', pool);
    await stocked(tenant, 4, INTERPRETER);
    const way = await impatientWay(url);
    const apart = `http://127.0.0.1:${way.port}`;
    byTwoPorts = passes({ E2B_API_URL: url, E2B_SANDBOX_URL: apart }, SILENT_S).finally(way.stop);
    byTwoPorts.catch(() => {});
  });
  after(() => daemon?.dispose());

  const passes = async (env: Readonly<Record<string, string>>, silentS = 0): Promise<void> => {
    const given = { env: { E2B_API_KEY: key, ...env }, silentS };
    const both = await Promise.all([
      checksOf(python, 'sync', given),
      checksOf(python, 'async', given),
    ]);
    for (const checks of both) {
      expect(checks.filter(({ why }) => why !== null)).to.deep.equal([]);
      expect(checks.map(({ check }) => check).toSorted()).to.deep.equal(CHECKS);
    }
  };

  it('work with two URLs of one port', async () => {
    await passes({ E2B_API_URL: url, E2B_SANDBOX_URL: url });
  });

  it('work with a domain over TLS with a local authority', async function () {
    const authority = anAuthority(['*.sandboxes.test']);
    if (!authority) return skipBecause(this, 'there is no openssl to make a certificate with');
    const way = await wayOfNames(url, authority);
    const env = {
      E2B_DOMAIN: 'sandboxes.test',
      HTTPS_PROXY: `http://127.0.0.1:${way.port}`,
      SSL_CERT_FILE: authority.caFile,
    };
    await passes(env).finally(() => {
      way.stop();
      rmSync(authority.folder, { recursive: true });
    });
  });

  for (const { page, prints } of [
    { page: 'README.md', prints: 'hello\n\n' },
    { page: 'docs/e2b.md', prints: '2\n' },
  ])
    it(`run the examples of ${page}`, async () => {
      const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8');
      const [, program = ''] = /^```python\n([^]*?)^```$/m.exec(text) ?? [];
      const env = { E2B_API_KEY: key, E2B_API_URL: url, E2B_SANDBOX_URL: url };

      expect(await printedBy(python, ['-c', program], env)).to.equal(prints);
    });

  it('work with two ports, over a connection that drops silent streams', async () => {
    await byTwoPorts;
  });
});
