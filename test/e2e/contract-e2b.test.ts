import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { SDKS, type Sdk, type SdkOptions, type SdkSandbox } from '../e2b/a-sdk.ts';
import { SERVICE_STEPS } from '../e2b/service-steps.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';

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

describe("E2B's SDKs, unchanged, on a daemon", function () {
  this.timeout(120_000);
  let daemon: DaemonUnderTest;
  let options: SdkOptions;

  before(async () => {
    daemon = await DaemonUnderTest.start(['--compatible-api-listen', '127.0.0.1:0']);
    const url = daemon.compatibleUrl;
    options = { apiKey: toCompatibleForm(daemon.tenantKey), apiUrl: url, sandboxUrl: url };
  });
  after(() => daemon.dispose());

  for (const [version, Sandbox] of SDKS)
    describe(`e2b ${version}`, () => {
      inOneSandbox(Sandbox, () => options);
    });
});
