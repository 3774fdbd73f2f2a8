import { expect } from 'chai';
import { within } from '../support/harness/a-daemon.ts';
import type { HttpAnswer, HttpClient } from '../support/harness/http-client.ts';
import { claim, clear, stocked } from '../support/harness/on-a-daemon.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { aTenantWithPool, onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

describe('waiting claims', () => {
  const daemon = onTheSharedDaemon();
  let client: HttpClient;

  before(async function () {
    client = await aTenantWithPool(daemon(), 'waiting', 1);
  });
  beforeEach(async () => {
    await clear(client);
    await stocked(client, 1);
  });

  /** Asked, and in flight. Another body under its key is refused for that, and changes nothing. */
  const waiting = async (
    name: string,
    more: { readonly poolName?: string; readonly signal?: AbortSignal } = {},
  ) => {
    const poolName = more.poolName ?? 'default';
    const headers = { 'Idempotency-Key': name };
    const answer = client.post(
      '/sandboxes',
      { poolName, waitTimeoutSeconds: NEVER_COMES_MS / 1_000 },
      { headers, signal: more.signal },
    );
    answer.catch(() => undefined);
    await client.get('/sandboxes'); // asked after it
    await within(
      `${name} waits`,
      async () =>
        (await client.post('/sandboxes', { poolName }, { headers })).json.errorCode ===
          'IDEMPOTENCY_KEY_REUSED' || undefined,
    );
    return { answer };
  };
  const idOf = ({ status, text, json }: HttpAnswer): string => {
    expect(status, text).to.equal(201);
    return json.sandbox?.['sandboxId'] ?? '';
  };

  it('get returned sandboxes, first come first served, and keep their answers', async () => {
    const held = await claim(client);
    const [first, second] = [await waiting('first'), await waiting('second')];
    expect((await client.post('/sandboxes', { poolName: 'default' })).json.errorCode).to.equal(
      'POOL_EXHAUSTED',
    );
    await client.delete(`/sandboxes/${held}`);
    const one = idOf(await first.answer);
    expect(
      (
        await client.post(
          '/sandboxes',
          { poolName: 'default', waitTimeoutSeconds: NEVER_COMES_MS / 1_000 },
          { headers: { 'Idempotency-Key': 'second' } },
        )
      ).status,
    ).to.equal(409);
    await client.delete(`/sandboxes/${one}`);
    const two = await second.answer;

    expect(new Set([held, one, idOf(two)]).size).to.equal(3);
    const again = await client.post(
      '/sandboxes',
      { poolName: 'default', waitTimeoutSeconds: NEVER_COMES_MS / 1_000 },
      { headers: { 'Idempotency-Key': 'second' } },
    );
    expect([again.status, again.text, again.headers['idempotency-replayed']]).to.deep.equal([
      201,
      two.text,
      'true',
    ]);
  });

  it('take nothing for a disconnected client', async () => {
    const held = await claim(client);
    const gone = new AbortController();
    await waiting('gone', { signal: gone.signal });
    const { answer } = await waiting('stays');
    gone.abort();
    await within('it waits no more', async () => {
      const headers = { 'Idempotency-Key': 'gone' };
      const again = await client.post('/sandboxes', { poolName: 'default' }, { headers });
      return again.json.errorCode === 'POOL_EXHAUSTED' || undefined;
    });
    await client.delete(`/sandboxes/${held}`);

    idOf(await answer);
    expect((await client.get('/sandboxes?phase=Running')).json.total).to.equal(1);
  });
});
