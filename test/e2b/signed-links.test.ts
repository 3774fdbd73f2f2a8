import { expect } from 'chai';
import { request } from 'node:http';
import { toCompatibleForm } from '../../src/model/api-key-text.ts';
import { signatureOf } from '../../src/services/keys/signed-links.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';
import { SDKS, type SdkSandbox } from './a-sdk.ts';

for (const [version, Sandbox] of SDKS)
  describe(`links to files, signed by e2b ${version}`, () => {
    let api: CompatibleApi;
    let sandbox: SdkSandbox;
    let another: SdkSandbox;
    before(async () => {
      api = await aCompatibleApi();
      const apiKey = toCompatibleForm(api.keys.tenant);
      const own = { apiKey, apiUrl: api.url, sandboxUrl: api.url };
      another = await Sandbox.create('base', own);
      sandbox = await Sandbox.create('base', own);
    });
    after(() => api.stop());

    const status = async (url: string, init: RequestInit = {}): Promise<number> => {
      const answer = await fetch(url, init);
      await answer.arrayBuffer();
      return answer.status;
    };
    const upload = (content: string): RequestInit => {
      const body = new FormData();
      body.append('file', new Blob([content]), 'a');
      return { method: 'POST', body };
    };

    it('write and read their own file, and nothing else', async () => {
      const path = '/home/user/ä +&.txt';
      const write = await sandbox.uploadUrl(path);
      const read = await sandbox.downloadUrl(path, { useSignatureExpiration: 10 ** 9 });

      expect(await status(write, upload('hello'))).to.equal(200);
      expect(await (await fetch(read)).text()).to.equal('hello');
      expect(await status(read, upload('x'))).to.equal(401);
      expect(await status(write)).to.equal(401);
      expect(await status(read.replace('%C3%A4', 'a'))).to.equal(401);
      expect(
        await status(read.replace(/v1_(.)/, (_, first) => `v1_${first === 'A' ? 'B' : 'A'}`)),
      ).to.equal(401);
      expect(await status(read.replace(/signature_expiration=\d/, '$&1'))).to.equal(401);
    });

    it('work for their own sandbox, even if a request names another', async () => {
      const read = await sandbox.downloadUrl('/home/user/ä +&.txt');
      const asked = (sandboxId: string): Promise<number> =>
        status(read, { headers: { 'E2b-Sandbox-Id': sandboxId } });

      expect(await asked(sandbox.sandboxId)).to.equal(200);
      expect(await asked(another.sandboxId)).to.equal(401);
      expect(await asked('0'.repeat(32))).to.equal(401);
      expect(await asked('none')).to.equal(401);
    });

    it('work for the file that is opened, however the query is spelled', async () => {
      const other = await sandbox.uploadUrl('/home/user/other');
      expect(await status(other, upload('secret'))).to.equal(200);
      const read = new URL(await sandbox.downloadUrl('/home/user/a'));
      const signature = encodeURIComponent(read.searchParams.get('signature') ?? '');
      const user = read.searchParams.has('username') ? '&username=user' : '';

      for (const path of [
        'path=/home/user/a?/../other',
        '%70ath=/home/user/a&path=/home/user/other',
        'path=/home/user/a&%70ath=/home/user/other',
      ]) {
        const answer = await fetch(`${api.url}/files?signature=${signature}${user}&${path}`);
        expect(await answer.text(), path).not.to.contain('secret');
        expect(answer.status, path).to.be.oneOf([401, 404]);
      }
    });

    it('work from pages of any origin, which ask before they send', async () => {
      const headers = { Origin: 'https://page.example' };
      const asks = { ...headers, 'Access-Control-Request-Method': 'POST' };
      const before = await fetch(await sandbox.uploadUrl('/home/user/page'), {
        ...{ method: 'OPTIONS' },
        headers: { ...asks, 'Access-Control-Request-Headers': 'x-access-token' },
      });
      const wrong = await fetch(`${api.url}/files?path=/x&signature=wrong`, { headers });
      const control = await fetch(`${api.url}/v2/sandboxes`, { headers });
      const port = await fetch(api.url, {
        headers: { ...headers, 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '80' },
      });

      expect(before.status).to.equal(204);
      expect(before.headers.get('access-control-allow-methods')).to.contain('POST');
      expect(before.headers.get('access-control-allow-headers')).to.equal('x-access-token');
      for (const answer of [before, wrong, control])
        expect(answer.headers.get('access-control-allow-origin')).to.equal('*');
      expect(port.headers.get('access-control-allow-origin')).to.equal(null);
      expect(await port.text())
        .to.contain('E2B-Traffic-Access-Token')
        .and.contain('openPorts');
    });

    it('cannot open a port by an upgrade', async () => {
      const headers = { Connection: 'Upgrade', Upgrade: 'websocket' };
      const asked = request(await sandbox.downloadUrl('/home/user/a'), { headers }).end();
      const status = await new Promise((resolve, reject) => {
        asked.once('response', (answer) => resolve(answer.resume().statusCode));
        asked.once('upgrade', () => resolve(101)).once('error', reject);
      });

      expect(status).to.equal(401);
    });

    it('are invalid once expired, or with another key', async () => {
      const past = await sandbox.downloadUrl('/a', { useSignatureExpiration: -(10 ** 9) });
      const forged = new URL('/files?path=%2Fa', api.url);
      forged.searchParams.set('signature', signatureOf('/a:read::guessed'));

      expect(await status(past)).to.equal(401);
      expect(await status(forged.href)).to.equal(401);
    });
  });
