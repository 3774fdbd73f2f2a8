import { expect } from 'chai';
import { aServer, type TestServer } from './a-server.ts';

describe('entity tags', () => {
  let server: TestServer;
  let sandbox: string;

  beforeEach(async () => {
    server = await aServer();
    await server.makeShells(5);
    const { json } = await server.tenant.post('/sandboxes', { poolName: 'shells' });
    sandbox = `/sandboxes/${json.sandbox?.['sandboxId'] ?? ''}`;
  });
  afterEach(() => server.stop());

  const tagOf = async (path: string): Promise<string> =>
    (await server.tenant.get(path)).headers['etag'] ?? '';

  it('depend on the revision and the view', async () => {
    expect(await tagOf(sandbox)).to.match(/^"\d+-[0-9a-f]{16}"$/);
    // The revision of a pool moves with its status too, which is nothing that its owner said.
    expect(await tagOf('/sandboxpools/shells')).to.match(/^"[0-9a-f]{32}-[0-9a-f]{16}"$/);
  });

  it('stay while nothing changes, and a matching GET gets 304 without a body', async () => {
    for (const path of ['/sandboxpools/shells', `/v1${sandbox}`]) {
      const tag = await tagOf(path);
      server.operations.clock.advance(5_000);
      for (const named of [tag, `W/${tag}`, `"other-1", ${tag}`, '*']) {
        const { status, text, headers } = await server.tenant.get(path, {
          headers: { 'If-None-Match': named },
        });
        expect([named, status, text, headers['etag']]).to.deep.equal([named, 304, '', tag]);
        expect(headers).to.have.property('x-request-id');
      }
    }
  });

  it('of an env with members stay while only the time of its snapshot changes', async () => {
    await server.tenant.post('/envs', {
      name: 'dev',
      templateRef: { name: 'default' },
      mode: 'WarmPool',
    });
    await server.tenant.post('/envs/dev/sandboxpools', { name: 'one', replicas: 1 });
    const first = await server.tenant.get('/envs/dev');
    server.operations.clock.advance(5_000);

    const { status } = await server.tenant.get('/envs/dev', {
      headers: { 'If-None-Match': first.headers['etag'] ?? '' },
    });

    expect(first.text).to.contain('lastSnapshotTime');
    expect(status).to.equal(304);
  });

  it('change with the view: a GET with an old tag gets the new view', async () => {
    const tag = await tagOf('/sandboxpools/shells');
    await server.tenant.post('/sandboxes', { poolName: 'shells' });

    const { status, headers } = await server.tenant.get('/sandboxpools/shells', {
      headers: { 'If-None-Match': tag },
    });

    expect(status).to.equal(200);
    expect(headers['etag']).not.to.equal(tag);
    expect(headers['etag']?.split('-')[0]).to.equal(tag.split('-')[0]);
  });

  it('let a PUT with If-Match pass at its revision, and get 412 at another', async () => {
    const tag = await tagOf('/sandboxpools/shells');
    const put = (ifMatch: string) =>
      server.tenant.put(
        '/sandboxpools/shells',
        { replicas: 6 },
        { headers: { 'If-Match': ifMatch } },
      );
    // moves the view, not the revision
    await server.tenant.post('/sandboxes', { poolName: 'shells' });

    server.operations.driver.hold('launch'); // which moves the view, too
    const first = await put(`"9-0123456789abcdef", ${tag}`);
    expect([first.status, first.headers['etag']]).to.deep.equal([
      200,
      await tagOf('/sandboxpools/shells'),
    ]);
    for (const stale of [tag, `W/${first.headers['etag'] ?? ''}`, '"nonsense"', 'nonsense']) {
      const { status, json } = await put(stale);
      expect([stale, status, json.errorCode]).to.deep.equal([stale, 412, 'PRECONDITION_FAILED']);
    }
    expect((await put('*')).status).to.equal(200);
  });

  it('protect the idle timeout too', async () => {
    const tag = await tagOf(sandbox);
    const put = () =>
      server.tenant.put(
        `${sandbox}/idle-timeout`,
        { idleTimeout: '5m' },
        { headers: { 'If-Match': tag } },
      );

    expect((await put()).status).to.equal(200);
    expect((await put()).status).to.equal(412);
  });

  it('protect an autoscaling group too', async () => {
    await server.tenant.post('/envs', {
      name: 'sized',
      templateRef: { name: 'default' },
      mode: 'WarmPool',
    });
    await server.tenant.post('/envs/sized/sandboxpools', { name: 'one', replicas: 1 });
    const group = '/envs/sized/autoscaling/groups/one';
    const tag = await tagOf(group);
    const put = (maxReplicas: number) =>
      server.tenant.put(group, { maxReplicas }, { headers: { 'If-Match': tag } });

    const { status, headers } = await put(7);
    expect([status, headers['etag']]).to.deep.equal([200, await tagOf(group)]);
    const { status: late, json } = await put(8);
    expect([late, json.errorCode]).to.deep.equal([412, 'PRECONDITION_FAILED']);
  });

  it('do not reveal whether a resource exists', async () => {
    expect(
      (await server.tenant.put('/sandboxpools/nope', {}, { headers: { 'If-Match': '"1-x"' } }))
        .status,
    ).to.equal(404);
    expect(
      (await server.stranger.get('/sandboxpools/shells', { headers: { 'If-None-Match': '*' } }))
        .status,
    ).to.equal(404);
  });
});
