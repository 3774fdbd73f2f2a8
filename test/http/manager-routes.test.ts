import { expect } from 'chai';
import { aServer, type TestServer } from './a-server.ts';

describe('/admin/managers', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await aServer();
    server.operations.managers.push('wss://hub.example.com');
  });
  afterEach(() => server.stop());

  it('shows managers, disconnects them and accepts them again', async () => {
    const shown = { addresses: ['wss://hub.example.com'], cutOff: false, links: 0 };
    expect((await server.admin.get('/admin/managers')).json).to.deep.equal(shown);
    const { json } = await server.admin.put('/admin/managers', { cutOff: true });
    expect(json).to.include({ cutOff: true }).and.to.have.property('cutOffAt').that.matches(/Z$/);
    expect((await server.admin.put('/admin/managers', { cutOff: false })).json).to.deep.equal(
      shown,
    );
  });

  it('needs an admin, and names an invalid field', async () => {
    const asked = await server.tenant.put('/admin/managers', { cutOff: true });
    expect(asked.json.errorCode).to.equal('ADMIN_REQUIRED');
    for (const wrong of [{}, { cutOff: 'yes' }, { cutOff: null }]) {
      const { status, json } = await server.admin.put('/admin/managers', wrong);
      expect([status, json.errorCode], JSON.stringify(wrong)).to.deep.equal([
        400,
        'INVALID_ARGUMENT',
      ]);
    }
    server.operations.managers.length = 0;
    const none = await server.admin.put('/admin/managers', { cutOff: true });
    expect([none.status, none.json.error]).to.deep.equal([
      400,
      'cutOff: this cluster has no manager: fleet.managers is empty',
    ]);
  });
});
