import { expect } from 'chai';
import { HttpClient } from '../support/harness/http-client.ts';
import { aServer, type TestServer } from './a-server.ts';

const DAY = 24 * 60 * 60_000;

describe('the expiry of an API key', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  const warningOf = async (
    lifetimeMs: number,
    afterMs: number,
    body?: object,
  ): Promise<string | undefined> => {
    const client = new HttpClient(
      server.port,
      await server.operations.key('alpha', 'eve', 'user', lifetimeMs),
    );
    server.operations.clock.advance(afterMs);
    try {
      const { headers } = await (body
        ? client.post('/sandboxpools', body)
        : client.get('/sandboxes'));
      return headers['warning'] as string | undefined;
    } finally {
      client.close();
    }
  };

  it('is announced in its last 14 days, next to warnings about unknown fields', async () => {
    expect(await warningOf(28 * DAY, 14 * DAY)).to.equal(undefined);
    expect(await warningOf(28 * DAY, 14 * DAY + 1)).to.match(
      /^299 - "this API key expires at \d{4}-\S+Z; create another key in time"$/,
    );
    expect(
      await warningOf(28 * DAY, 15 * DAY, {
        name: 'p',
        templateName: 'default',
        replicas: 0,
        odd: 1,
      }),
    ).to.match(/^299 - "this API key expires at .*", 299 - "unknown field odd"$/);
  });

  it('is not announced for short-lived keys', async () => {
    expect(await warningOf(28 * DAY - 1, 15 * DAY)).to.equal(undefined);
  });
});
