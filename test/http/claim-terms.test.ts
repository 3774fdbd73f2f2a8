import { expect } from 'chai';
import { callsOf, type Engine } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

const many = (count: number, prefix: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, 'x']));

describe('variables and metadata of a claim over HTTP', () => {
  let server: TestServer;
  let claims: Parameters<Engine['claimSandbox']>[];
  let listed: Parameters<Engine['listSandboxes']>[];
  beforeEach(async () => {
    server = await aServer();
    claims = callsOf(server.operations, 'claimSandbox');
    listed = callsOf(server.operations, 'listSandboxes');
    await server.makeShells(9);
  });
  afterEach(() => server.stop());

  const claim = (part: object) => server.tenant.post('/sandboxes', { poolName: 'shells', ...part });

  it('are accepted up to their bounds, and just metadata is returned', async () => {
    const few = { ...many(127, 'V_'), BIG: '' };
    const left = 65_536 - Object.entries(few).flat().join('').length;
    const env = { ...few, BIG: 'x'.repeat(left) };
    const metadata = { ...many(63, 'k'), job: '42' };
    const answer = await claim({ env, metadata });

    expect(answer.status).to.equal(201);
    expect(claims.at(-1)?.[1].env).to.deep.equal(env);
    expect(answer.json.sandbox).to.deep.include({ metadata });
    expect(answer.text).to.not.include('BIG');
    expect((await claim({ metadata: { k: 'x'.repeat(4_095) } })).status).to.equal(201);
  });

  it('can be empty', async () => {
    const answer = await claim({ env: {}, metadata: {} });

    expect(answer.json.sandbox).to.not.have.property('metadata');
    expect(claims.at(-1)?.[1].env).to.equal(undefined);
  });

  it("can have any names that a user's process can have", async () => {
    const env = { LD_PRELOAD: '/tmp/mine.so', PATH: '/opt', IFS: ' ', LINES: 'a\nb\u0001ä' };
    expect((await claim({ env })).status).to.equal(201);
    expect(claims.at(-1)?.[1].env).to.deep.equal(env);
  });

  it('are refused beyond the bounds, by name, and their content is not repeated', async () => {
    const secret = 'canary-of-a-value';
    for (const [body, field] of [
      [{ env: { ...many(128, 'V'), MORE: secret } }, 'env'],
      [{ env: { A: secret, B: 'x'.repeat(65_536 - 1 - secret.length) } }, 'env'],
      [{ env: { A: 'x'.repeat(65_537) } }, 'env.A'],
      [{ env: { '': secret } }, 'env'],
      [{ env: { '1A': secret } }, 'env'],
      [{ env: { 'A-B': secret } }, 'env'],
      [{ env: { 'A=B': secret } }, 'env'],
      [{ env: { Ä: secret } }, 'env'],
      [{ env: { 'A\0': secret } }, 'env'],
      [{ env: { A: `${secret}\0` } }, 'env.A'],
      [{ env: { A: 7 } }, 'env.A'],
      [{ env: { A: null } }, 'env.A'],
      [{ env: ['A'] }, 'env'],
      [{ env: 'A=B' }, 'env'],
      [{ env: null }, 'env'],
      [{ metadata: many(65, 'k') }, 'metadata'],
      [{ metadata: { a: 'x'.repeat(4_096) } }, 'metadata'],
      [{ metadata: { a: 'ä'.repeat(2_048) } }, 'metadata'],
      [{ metadata: { '': 'x' } }, 'metadata'],
      [{ metadata: { ['k'.repeat(257)]: 'x' } }, 'metadata'],
      [{ metadata: { 'a\n': 'x' } }, 'metadata'],
      [{ metadata: { a: 'x\0' } }, 'metadata.a'],
      [{ metadata: { a: {} } }, 'metadata.a'],
      [{ metadata: { a: { length: 1 } } }, 'metadata.a'],
      [{ metadata: 5 }, 'metadata'],
    ] as const) {
      const answer = await claim(body);
      expect([answer.status, answer.json.detail], JSON.stringify(body).slice(0, 60)).to.deep.equal([
        400,
        { field },
      ]);
      expect(answer.text).to.not.include(secret);
    }
  });

  it('find sandboxes by all given pairs of metadata', async () => {
    for (const metadata of [
      { job: '42', stage: 'a' },
      { job: '42', stage: 'b' },
      { job: '7', 'a.b/c[d]': '=& ä' },
    ])
      await claim({ metadata });
    await claim({});
    const found = async (query: string) => {
      const answer = await server.tenant.get(`/sandboxes?${query}`);
      return [answer.status, answer.json.total, answer.headers['warning']];
    };

    expect(await found('metadata.job=42')).to.deep.equal([200, 2, undefined]);
    expect(await found('metadata[job]=42&metadata.stage=b')).to.deep.equal([200, 1, undefined]);
    expect(
      await found(`metadata.${encodeURIComponent('a.b/c[d]')}=${encodeURIComponent('=& ä')}`),
    ).to.deep.equal([200, 1, undefined]);
    expect(await found('metadata.job=9')).to.deep.equal([200, 0, undefined]);
    expect(await found('')).to.deep.equal([200, 4, undefined]);
    expect(listed.at(-1)?.[1]).to.not.have.property('metadata');
  });

  it('do not match a malformed pair', async () => {
    for (const [query, field] of [
      ['metadata=42', 'metadata'],
      ['metadata.=42', 'metadata'],
      ['metadata.job=1&metadata.job=2', 'metadata.job'],
      ['metadata.job=1&metadata[job]=2', 'metadata[job]'],
      ['metadata.job=%00', 'metadata.job'],
      [`metadata.${'k'.repeat(257)}=1`, 'metadata'],
      [Array.from({ length: 65 }, (_, at) => `metadata.k${at}=1`).join('&'), 'metadata'],
      [`metadata.a=${'x'.repeat(4_096)}`, 'metadata'],
    ] as const) {
      const answer = await server.tenant.get(`/sandboxes?${query}`);
      expect([answer.status, answer.json.detail], query.slice(0, 60)).to.deep.equal([
        400,
        { field },
      ]);
    }
    const { headers } = await server.tenant.get('/sandboxes?metadata[job=1&meta.job=2');
    expect(headers['warning']).to.include('metadata[job').and.include('meta.job');
  });

  it('do not affect other query parameters', async () => {
    const answer = await server.tenant.get('/sandboxes?metadata.__proto__=x&metadata.toString=y');
    expect([answer.status, answer.json.total]).to.deep.equal([200, 0]);
  });
});
