import { expect } from 'chai';
import { callsOf, type Engine } from '../support/harness/engine-operations.ts';
import { aServer, type TestServer } from './a-server.ts';

const aFile = (part: object = {}): object => ({ path: '/tmp/a', content: 'x', ...part });
const base64 = (bytes: number): object => ({
  content: Buffer.alloc(bytes, 7).toString('base64'),
  encoding: 'base64',
});

describe('files of a claim over HTTP', () => {
  let server: TestServer;
  let claims: Parameters<Engine['claimSandbox']>[];
  beforeEach(async () => {
    server = await aServer();
    claims = callsOf(server.operations, 'claimSandbox');
    await server.makeShells(9);
  });
  afterEach(() => server.stop());

  const claim = (files: unknown) => server.tenant.post('/sandboxes', { poolName: 'shells', files });

  it('are accepted as text or base64, with or without mode', async () => {
    const answer = await claim([
      aFile({ content: 'ä\0\n' }),
      aFile({ path: '/tmp/b', content: '/w==', encoding: 'base64', mode: '0755' }),
      aFile({ path: '/tmp/ä', content: '', encoding: 'utf8', mode: '600' }),
    ]);

    expect(answer.status, answer.text).to.equal(201);
    expect(claims.at(-1)?.[1].files).to.deep.equal([
      { path: Buffer.from('/tmp/a'), content: Buffer.from('ä\0\n') },
      { path: Buffer.from('/tmp/b'), content: Buffer.from([0xff]), mode: 0o755 },
      { path: Buffer.from('/tmp/ä'), content: Buffer.alloc(0), mode: 0o600 },
    ]);
  });

  it('are accepted up to the bounds of 16 files and 256 KiB in total', async () => {
    const many = Array.from({ length: 16 }, (_, at) =>
      aFile({ path: `/tmp/${at}`, ...base64(16 << 10) }),
    );
    expect((await claim(many)).status).to.equal(201);
    expect((await claim([aFile(base64(256 << 10))])).status).to.equal(201);
    expect((await claim([aFile({ content: 'x'.repeat(256 << 10) })])).status).to.equal(201);
  });

  it('can be an empty list', async () => {
    expect((await claim([])).status).to.equal(201);
    expect(claims.at(-1)?.[1].files).to.equal(undefined);
  });

  it('are refused beyond the bounds, by name, and their content is not repeated or logged', async () => {
    const secret = 'canary-of-a-file';
    for (const [files, field] of [
      [Array.from({ length: 17 }, (_, at) => aFile({ path: `/tmp/${at}` })), 'files'],
      [[aFile(base64((256 << 10) + 1))], 'files'],
      [[aFile({ content: 'x'.repeat((256 << 10) + 1) })], 'files'],
      [[aFile(base64(1)), aFile({ path: '/tmp/b', ...base64(256 << 10) })], 'files'],
      [[aFile({ content: 'ä'.repeat((128 << 10) + 1) })], 'files'],
      [[aFile(), aFile({ path: '/tmp/../etc/a' })], 'files[1].path'],
      [[aFile({ path: '/..' })], 'files[0].path'],
      [[aFile({ path: '/tmp/a\0b' })], 'files[0].path'],
      [[aFile({ path: 'tmp/a' })], 'files[0].path'],
      [[aFile({ path: '' })], 'files[0].path'],
      [[aFile({ path: `/${'x'.repeat(256)}` })], 'files[0].path'],
      [[aFile({ path: '/x'.repeat(2_500) })], 'files[0].path'],
      [[aFile({ path: undefined })], 'files[0].path'],
      [[aFile({ path: 7 })], 'files[0].path'],
      [[aFile(), aFile({ path: '/tmp/b' }), aFile({ path: '/tmp/./b' })], 'files[2].path'],
      [[aFile({ content: `${secret}!`, encoding: 'base64' })], 'files[0].content'],
      [[aFile({ content: 'YQ', encoding: 'base64' })], 'files[0].content'],
      [[aFile({ content: 'YQ==\n', encoding: 'base64' })], 'files[0].content'],
      [[aFile({ content: { length: secret } })], 'files[0].content'],
      [[aFile({ content: null })], 'files[0].content'],
      [[aFile({ content: undefined })], 'files[0].content'],
      [[aFile({ content: secret, encoding: 'latin1' })], 'files[0].encoding'],
      [[aFile({ content: secret, mode: '888' })], 'files[0].mode'],
      [[aFile({ content: secret, mode: 420 })], 'files[0].mode'],
      [[secret], 'files[0]'],
      [{ '/tmp/a': secret }, 'files'],
      [secret, 'files'],
      [null, 'files'],
    ] as const) {
      const answer = await claim(files);
      const name = JSON.stringify(files).slice(0, 80);
      expect([answer.status, answer.json.detail?.['field']], name).to.deep.equal([400, field]);
      expect(answer.text + JSON.stringify(server.log)).to.not.include(secret);
    }
    expect(claims).to.have.length(0);
  });
});
