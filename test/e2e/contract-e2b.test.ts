import { expect } from 'chai';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { SDKS, type Sdk, type SdkOptions, type SdkSandbox } from '../e2b/a-sdk.ts';
import { stepsByDomain } from '../e2b/by-domain.ts';
import { SERVICE_STEPS } from '../e2b/service-steps.ts';
import { impatientWay, type Way } from '../e2b/ways.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { sampled } from '../support/harness/sampled.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { NO_ATTRIBUTES, tmpfsHasAttributes } from '../support/harness/tmpfs-attributes.ts';

const OLDER = [...SDKS].slice(0, -1);
const [LATEST, LatestSandbox] = [...SDKS].at(-1) as [string, Sdk];
const IS_LONG = process.env['TEST_LONG'] === '1';
/** Longer than what stands between lets a connection be silent. */
const SILENT_S = 15;

const inOneSandbox = (Sandbox: Sdk, options: () => SdkOptions): void => {
  let sandbox: SdkSandbox;
  before(async () => {
    const envs = { OF_CLAIM: 'claim' };
    sandbox = await Sandbox.create('base', { ...options(), timeoutMs: 600_000, envs });
  });
  after(() => sandbox.kill());

  for (const [title, step] of Object.entries(SERVICE_STEPS))
    it(title, () => step({ Sandbox, options: options(), sandbox }));
};

describe("E2B's unmodified SDKs on a daemon", function () {
  let daemon: DaemonUnderTest;
  let options: SdkOptions;
  /** Those that have the addresses of the two parts of the API apart. */
  let apart: SdkOptions;
  let way: Way | undefined;
  // Both mostly wait: they go on beside the others.
  let byDomain: ReturnType<typeof stepsByDomain> | undefined;
  let inSilence: Promise<string> | undefined;

  before(async () => {
    daemon = await DaemonUnderTest.start([
      ...['--compatible-api-listen', '127.0.0.1:0', '--default-pool-replicas', '8'],
    ]);
    const url = daemon.compatibleUrl;
    options = { apiKey: toCompatibleForm(daemon.tenantKey), apiUrl: url, sandboxUrl: url };
    way = await impatientWay(url);
    apart = { ...options, sandboxUrl: `http://127.0.0.1:${way.port}` };
    inSilence = silent();
    inSilence.catch(() => {});
    if (IS_LONG) byDomain = stepsByDomain('services', { url, key: options.apiKey });
    byDomain?.catch(() => {});
  });
  after(async () => {
    await byDomain?.catch(() => {});
    way?.stop();
    await daemon.dispose();
  });

  const silent = async (): Promise<string> => {
    const sandbox = await LatestSandbox.create('base', apart);
    const { stdout } = await sandbox.commands.run(`sleep ${SILENT_S}; echo late`);
    await sandbox.kill();
    return stdout;
  };

  describe(`e2b ${LATEST}`, () => {
    inOneSandbox(LatestSandbox, () => options);
  });

  sampled(() => {
    for (const [version, Sandbox] of OLDER)
      describe(`e2b ${version}`, () => {
        inOneSandbox(Sandbox, () => options);
      });

    describe(`e2b ${LATEST} with two ports`, () => {
      inOneSandbox(LatestSandbox, () => apart);
    });
  });

  it(`keep the metadata of files with e2b ${LATEST}`, async function () {
    if (!tmpfsHasAttributes()) return skipBecause(this, NO_ATTRIBUTES);
    const sandbox = await LatestSandbox.create('base', options);
    const { files } = sandbox;
    const metadata = { author: 'Ada', 'x.y': '' };
    await files.write('/tmp/tagged/a', 'a', { metadata });
    const streamed = await files.write('/tmp/b', new Blob(['b']).stream(), { metadata });

    const shown = [streamed, ...(await files.list('/tmp/tagged')), await files.getInfo('/tmp/b')];
    expect(shown.map((each) => each.metadata)).to.deep.equal([metadata, metadata, metadata]);
    expect(await files.write('/tmp/b', 'c')).to.have.property('metadata', undefined);
    await sandbox.kill();
  });

  it(`let e2b ${LATEST} wait for a silent command over a connection that drops silent streams`, async () => {
    expect(await inSilence).to.equal('late\n');
  });

  // test/e2b/by-domain.test.ts has each SDK find a server so, with fewer steps.
  if (IS_LONG)
    it(`work with a domain over TLS with e2b ${LATEST}`, async function () {
      const steps = await byDomain;
      if (!steps) return skipBecause(this, 'there is no openssl to make a certificate with');

      expect(steps.filter(({ why }) => why !== null)).to.deep.equal([]);
      expect(steps.length).to.equal(Object.keys(SERVICE_STEPS).length - 1);
    });
});
