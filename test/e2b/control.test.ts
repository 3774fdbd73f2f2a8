import { expect } from 'chai';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { rejection } from '../support/harness/rejection.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { SDKS, type SdkOptions } from './a-sdk.ts';

for (const [version, Sandbox] of SDKS)
  describe(`the control API, by e2b ${version}`, () => {
    let api: CompatibleApi;
    let options: SdkOptions;
    before(async () => {
      api = await aCompatibleApi();
      options = optionsOf(api.keys.tenant);
    });
    after(() => api.stop());

    const optionsOf = (key: string): SdkOptions => ({
      apiKey: toCompatibleForm(key),
      apiUrl: api.url,
      sandboxUrl: api.url,
    });

    it('creates a sandbox, shows it, and ends it once', async () => {
      const sandbox = await Sandbox.create('base', {
        ...options,
        timeoutMs: 60_000,
        metadata: { run: 'a b', größe: '1&2' },
        envs: { TOKEN: 'canary' },
      });

      const info = await sandbox.getInfo();
      expect(sandbox.sandboxId).to.match(/^[0-9a-f]{32}$/);
      expect(info).to.deep.include({
        sandboxId: sandbox.sandboxId,
        templateId: 'default',
        metadata: { run: 'a b', größe: '1&2' },
        state: 'running',
        cpuCount: 1,
        memoryMB: 256,
      });
      expect(info.endAt.getTime() - info.startedAt.getTime()).to.equal(60_000);
      expect(api.operations.claimedEnv.at(-1)).to.deep.equal({ TOKEN: 'canary' });
      expect(await sandbox.isRunning()).to.equal(true);
      expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(true);
      expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(false);
      expect(await sandbox.isRunning()).to.equal(false);
    });

    it('names the host of a port by the domain that was asked', async () => {
      const sandbox = await Sandbox.create('base', options);

      expect(sandbox.getHost(3_000)).to.equal(`3000-${sandbox.sandboxId}.${new URL(api.url).host}`);
      await sandbox.kill();
    });

    it("says of another tenant's sandbox what it says of none", async () => {
      const { sandboxId } = await Sandbox.create('base', options);
      const stranger = optionsOf(api.keys.stranger);

      const theirs = await rejection(Sandbox.getInfo(sandboxId, stranger));
      const none = await rejection(Sandbox.getInfo(sandboxId.replace(/.$/, 'f'), stranger));
      expect(theirs.name).to.equal(none.name);
      expect(theirs.message.replace(sandboxId, '')).to.equal(
        none.message.replace(sandboxId.replace(/.$/, 'f'), ''),
      );
      expect(await Sandbox.kill(sandboxId, stranger)).to.equal(false);
      expect(await Sandbox.kill(sandboxId, options)).to.equal(true);
    });

    it('refuses a key that is none', async () => {
      const error = await rejection(
        Sandbox.create('base', { ...options, apiKey: 'e2b_0123456789abcdef' }),
      );

      expect(error.name).to.equal('AuthenticationError');
    });
  });
