import { expect } from 'chai';
import { aServer, type TestServer } from './a-server.ts';

describe('/debug/log-level', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
  });
  afterEach(() => server.stop());

  it('shows and changes the level, temporarily if requested', async () => {
    expect((await server.admin.get('/debug/log-level')).json).to.deep.equal({
      replica: 'one',
      level: 'info',
      configured: 'info',
    });

    const changed = await server.admin.put('/debug/log-level', { level: 'debug', forSeconds: 600 });
    expect(changed.json)
      .to.include({ level: 'debug', configured: 'info' })
      .and.to.have.property('until')
      .that.matches(/Z$/);
    expect((await server.admin.put('/debug/log-level', { level: 'warn' })).json).to.deep.equal({
      replica: 'one',
      level: 'warn',
      configured: 'info',
    });
  });

  it('needs an admin, and accepts only levels and durations', async () => {
    expect(
      (await server.tenant.put('/debug/log-level', { level: 'debug' })).json.errorCode,
    ).to.equal('ADMIN_REQUIRED');
    for (const wrong of [
      {},
      { level: 'loud' },
      { level: 'debug', forSeconds: 0 },
      { level: 'debug', forSeconds: 86_401 },
      { level: 'debug', forSeconds: '10m' },
    ]) {
      expect(
        (await server.admin.put('/debug/log-level', wrong)).status,
        JSON.stringify(wrong),
      ).to.equal(400);
    }
  });
});
