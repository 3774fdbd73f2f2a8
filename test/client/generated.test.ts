import { expect } from 'chai';
import { operationRequest } from '../../src/cli/client/operation-request.ts';

describe('the generated client', () => {
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
