import { expect } from 'chai';
import { onACliDaemon } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

describe('sandpool quotas', () => {
  const { sandpool } = onACliDaemon();

  it("shows a user's limits and usage", async () => {
    const end = await sandpool('quotas');
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    expect(end.stdout).to.match(
      /^RESOURCE +LIMIT +USED +REMAINING\nsandboxes +1000 +0 +1000\npools +50 /,
    );
    expect((await sandpool('quotas', 'get')).stdout).to.equal(end.stdout);
    expect((await sandpool('quotas', '-o', 'wide')).stdout).to.match(
      / OF\nsandboxes .* default\/default\n/,
    );
    expect(JSON.parse((await sandpool('quotas', '-o', 'json')).stdout)).to.have.property(
      'total',
      3,
    );
  });

  it('sets the given limits for an admin, and shows them for any user', async () => {
    const set = await sandpool(...line`quotas set blue ada --sandboxes 3 --replicas 0 --admin`);
    expect([set.code, set.stderr]).to.deep.equal([0, '']);
    expect(set.stdout)
      .to.match(/^sandboxes +3 +0 +3$/m)
      .and.match(/^pools +50 /m)
      .and.match(/^replicas +0 +0 +0$/m);
    expect((await sandpool('quotas', 'get', 'blue', 'ada', '--admin')).stdout).to.equal(set.stdout);
    expect((await sandpool('quotas', 'blue', 'ada', '--admin')).stdout).to.equal(set.stdout);
  });

  it('reports errors', async () => {
    expect((await sandpool('quotas', 'set', 'blue', 'ada', '--admin')).stderr)
      .to.include('nothing to set')
      .and.include('--sandboxes');
    expect((await sandpool('quotas', 'get', 'blue', '--admin')).stderr).to.include('both');
    expect((await sandpool('quotas', 'set', 'blue', 'ada', '--pools', '5')).stderr).to.include(
      'ADMIN_REQUIRED',
    );
    for (const wrong of [
      ['quotas', 'set', 'blue'],
      ['quotas', 'set', 'blue', 'ada', '--pools', '-1'],
      ['quotas', 'set', 'blue', 'ada', '--pools', '100001'],
    ]) {
      expect((await sandpool(...wrong)).code, wrong.join(' ')).to.equal(2);
    }
  });
});
