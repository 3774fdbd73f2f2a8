import { expect } from 'chai';
import { clientTypesAreFresh } from '../../script/client-types.ts';
import { operationRequest } from '../../src/client/operation-request.ts';

describe('the generated client', () => {
  it('is what the document says (npx tsx script/client-types.ts writes it)', async () => {
    expect(await clientTypesAreFresh()).to.equal(true);
  });

  it('puts parts of the path, the query and the body where the document has them', () => {
    expect(
      operationRequest('execInSandbox', {
        params: { sandboxId: 'a/b' },
        body: { command: ['true'] },
      }),
    ).to.deep.equal({ method: 'POST', path: '/sandboxes/a%2Fb/exec', body: { command: ['true'] } });
    expect(operationRequest('listPools', { query: { all: true, limit: 5 } })).to.deep.equal({
      method: 'GET',
      path: '/sandboxpools?all=true&limit=5',
      body: undefined,
    });
  });
});
