import { expect } from 'chai';
import { apiPage, apiPageIsFresh } from '../../script/api-docs.ts';

describe('docs/api.md', () => {
  it('is what the route rows say (npx tsx script/api-docs.ts writes it)', () => {
    expect(apiPageIsFresh()).to.equal(true);
  });

  it('shows each operation with its fields, bounds, statuses and codes', () => {
    const [, claim = ''] = /\n### POST \/sandboxes\n([^]*?)\n### /.exec(apiPage()) ?? [];

    expect(claim).to.include('| `poolName` | text of 1 to 512 characters | required |');
    expect(claim).to.include('| Answer 201 |').and.to.include('[Sandbox](#sandbox)');
    expect(claim).to.include('403 `POOL_NOT_OWNED`').and.to.include('429 `POOL_EXHAUSTED`').and.to.include('401 `API_KEY_REQUIRED`');
  });
});
