import { expect } from 'chai';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { aCompatibleApi } from '../e2b/a-compatible-api.ts';
import { ProxyBetween, type Changes } from '../e2b/a-proxy-between.ts';
import { SDKS, type Sdk, type SdkOptions } from '../e2b/a-sdk.ts';
import { CONTROL_STEPS, controlWorld } from '../e2b/control-steps.ts';
import { CONTROL_FAULTS, SERVICE_FAULTS } from '../e2b/server-faults.ts';
import { SERVICE_STEPS, type ServiceWorld } from '../e2b/service-steps.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { eventually } from '../support/harness/eventually.ts';

const [version, Sandbox] = [...SDKS].at(-1) as [string, Sdk];
/** In a step with a fault: what has not come then never comes. */
const LOOKS = 200;

/** Runs a step with what is between an SDK and the server, and returns what that fails with. */
const between = async (
  url: string,
  changes: Changes,
  step: (url: string) => Promise<void>,
): Promise<unknown> => {
  const proxy = new ProxyBetween(url, changes);
  const through = await proxy.start();
  try {
    return await step(through).then(
      () => undefined,
      (error: unknown) => error,
    );
  } finally {
    proxy.stop();
  }
};

describe('a server with one fault, under the suites of the SDKs', function () {
  describe('in its control API', () => {
    const failureOf = async (
      step: keyof typeof CONTROL_STEPS,
      changes: Changes = {},
    ): Promise<unknown> => {
      const api = await aCompatibleApi();
      try {
        return await between(api.url, changes, (url) =>
          CONTROL_STEPS[step](controlWorld({ ...api, url }, { version, Sandbox })),
        );
      } finally {
        await api.stop();
      }
    };

    for (const step of new Set(CONTROL_FAULTS.map((fault) => fault.step)))
      it(`passes when it ${step}`, async () => {
        expect(await failureOf(step)).to.equal(undefined);
      });

    for (const { name, step, changes } of CONTROL_FAULTS)
      it(`fails when it ${name}`, async () => {
        expect(await failureOf(step, changes())).to.be.instanceOf(Error);
      });
  });

  describe('in the services of its sandboxes', () => {
    let daemon: DaemonUnderTest;
    let options: SdkOptions;
    before(async () => {
      daemon = await DaemonUnderTest.start(['--compatible-api-listen', '127.0.0.1:0']);
      const url = daemon.compatibleUrl;
      options = { apiKey: toCompatibleForm(daemon.tenantKey), apiUrl: url, sandboxUrl: url };
    });
    after(() => daemon.dispose());

    const failureOf = async (
      step: keyof typeof SERVICE_STEPS,
      changes: Changes = {},
      until: ServiceWorld['until'] = eventually,
    ): Promise<unknown> => {
      const envs = { OF_CLAIM: 'claim' };
      const made = await Sandbox.create('base', { ...options, envs });
      try {
        return await between(options.apiUrl, changes, async (url) => {
          const own = { ...options, apiUrl: url, sandboxUrl: url };
          const sandbox = await Sandbox.connect(made.sandboxId, own);
          await SERVICE_STEPS[step]({ Sandbox, options: own, sandbox, until });
        });
      } finally {
        await made.kill();
      }
    };

    for (const step of new Set(SERVICE_FAULTS.map((fault) => fault.step)))
      it(`passes when it ${step}`, async () => {
        expect(await failureOf(step)).to.equal(undefined);
      });

    for (const { name, step, changes } of SERVICE_FAULTS)
      it(`fails when it ${name}`, async () => {
        expect(await failureOf(step, changes(), inSomeLooks)).to.be.instanceOf(Error);
      });
  });

  it('has at least twenty variants', () => {
    expect(CONTROL_FAULTS.length + SERVICE_FAULTS.length).to.be.at.least(20);
  });
});

/** Fails after a number of looks, not after a time: on a slow machine the fault is noticed as well. */
const inSomeLooks = async (isSo: () => boolean, what: string): Promise<void> => {
  let looks = 0;
  await eventually(() => isSo() || (looks += 1) > LOOKS, what);
  if (looks > LOOKS) throw new Error(`not in ${LOOKS} looks: ${what}`);
};
