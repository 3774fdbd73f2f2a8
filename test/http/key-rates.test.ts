import { expect } from 'chai';
import { KeyRates } from '../../src/http/limits/key-rates.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('the rate of an API key', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it('answers 429 with Retry-After past it, to that key alone, and goes on a second later', async () => {
    let now = 0;
    server = await aServer({ keyRates: new KeyRates(3, () => now) });
    for (let at = 0; at < 3; at += 1)
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    const refused = await server.tenant.get('/sandboxes');
    expect(refused.status).to.equal(429);
    expect(refused.headers['retry-after']).to.equal('1');
    expect(refused.json).to.deep.equal({
      errorCode: 'RATE_LIMITED',
      error: 'this API key may send 3 requests a second, and sent more; try again later',
    });
    expect((await server.colleague.get('/sandboxes')).status).to.equal(200);
    now += 1_000;
    expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
  });

  it('has no bound where it is 0', async () => {
    server = await aServer({ keyRates: new KeyRates(0) });
    for (let at = 0; at < 20; at += 1)
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
  });
});
