import { expect } from 'chai';
import { signatureOf } from '../../src/services/keys/signed-links.ts';
import { aCompatibleApi, type CompatibleApi } from './a-compatible-api.ts';

describe('wrong signatures in links to files', () => {
  let api: CompatibleApi;
  before(async () => {
    api = await aCompatibleApi({ trustedProxies: ['127.0.0.1'] });
  });
  after(() => api.stop());

  const status = async (from: string, signature: string): Promise<number> => {
    const query = new URLSearchParams({ path: '/etc', signature });
    const answer = await fetch(`${api.url}/files?${String(query)}`, {
      headers: { 'X-Forwarded-For': from },
    });
    await answer.arrayBuffer();
    if (answer.status === 429) expect(answer.headers.get('retry-after')).to.match(/^[1-9]\d*$/);
    return answer.status;
  };

  it('above 20 a minute delay their address, and no others', async () => {
    const created = await fetch(`${api.url}/v2/sandboxes`, {
      method: 'POST',
      headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
      body: JSON.stringify({ templateID: 'base' }),
    });
    const { envdAccessToken } = (await created.json()) as { readonly envdAccessToken: string };
    const good = signatureOf(`/etc:read::${envdAccessToken}`);
    const wrong = signatureOf('/etc:read::guessed');

    const told = [];
    for (let sent = 0; sent < 21; sent += 1) told.push(await status('192.0.2.1', wrong));

    expect(told).to.deep.equal([...Array(20).fill(401), 429]);
    expect(await status('192.0.2.1', good)).to.equal(429);
    expect(await status('192.0.2.2', good)).to.not.be.oneOf([401, 429]);
    api.operations.clock.advance(60_000);
    expect(await status('192.0.2.1', good)).to.not.be.oneOf([401, 429]);
  });
});
