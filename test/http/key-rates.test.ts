import { expect } from 'chai';
import { KeyRates } from '../../src/http/limits/shares.ts';
import { eventually } from '../support/harness/eventually.ts';
import { connectRaw } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

describe('the rate of an API key', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it('causes 429 with Retry-After beyond the limit, for that key only, until a second later', async () => {
    let now = 0;
    server = await aServer({ keyRates: new KeyRates(3, () => now) });
    for (let at = 0; at < 3; at += 1)
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
    const refused = await server.tenant.get('/sandboxes');
    expect(refused.status).to.equal(429);
    expect(refused.headers['retry-after']).to.equal('1');
    expect(refused.json).to.deep.equal({
      errorCode: 'RATE_LIMITED',
      error: 'this API key has sent more than its 3 requests per second; try again later',
    });
    expect((await server.colleague.get('/sandboxes')).status).to.equal(200);
    now += 1_000;
    expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
  });

  it('counts a request once, and excess requests not at all', () => {
    let now = 0;
    const rates = new KeyRates(2, () => now);
    const [key, first] = [{ keyId: 'one' }, {}];
    expect(rates.countEarly(key, first)).to.equal(true);
    rates.count(key, first);
    expect(rates.countEarly(key, {})).to.equal(true);
    const third = {};
    expect(rates.countEarly(key, third)).to.equal(false);
    expect(() => rates.count(key, third)).to.throw('2 requests per second');
    expect(rates.countEarly({ keyId: 'another' }, {})).to.equal(true);
    now += 1_000;
    rates.count(key, third);
  });

  it('is remembered for the last 10,000 keys', () => {
    const rates = new KeyRates(1, () => 0);
    const isCounted = (keyId: string): boolean => rates.countEarly({ keyId }, {});
    expect([isCounted('first'), isCounted('first')]).to.deep.equal([true, false]);
    for (let n = 1; n < 10_000; n += 1) isCounted(`key-${n}`);
    expect(isCounted('first')).to.equal(false);
    for (let n = 0; n < 10_000; n += 1) isCounted(`other-${n}`);
    expect(isCounted('first')).to.equal(true);
  });

  it('refuses excess requests on one connection, and answers the others', async () => {
    server = await aServer({ keyRates: new KeyRates(3, () => 0) });
    const connection = await connectRaw(server.port);
    const request = `GET /sandboxes HTTP/1.1\r\nHost: x\r\nSERVICE-API-KEY: ${server.tenant.key}\r\n\r\n`;
    connection.socket.write(request.repeat(30));
    const answers = () => connection.received().match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];
    await eventually(() => answers().length === 30, 'all are answered');
    expect(answers().filter((status) => status === '200')).to.have.length(3);
    expect(answers().filter((status) => status === '429')).to.have.length(27);
    connection.socket.destroy();
  });

  it('is unlimited if it is 0', async () => {
    server = await aServer({ keyRates: new KeyRates(0) });
    for (let at = 0; at < 20; at += 1)
      expect((await server.tenant.get('/sandboxes')).status).to.equal(200);
  });
});
