import { expect } from 'chai';
import { inRequest, requestNow } from '../../src/model/request-scope.ts';

describe('the request in whose course something is done', () => {
  it('is known through all that it waits for, beside others', async () => {
    const seen: unknown[] = [];
    const look = async (id: string): Promise<void> => {
      await inRequest(id, async () => {
        await Promise.resolve();
        seen.push([id, requestNow()]);
      });
    };
    await Promise.all([look('one'), look('two')]);
    expect(seen).to.deep.equal([['one', { requestId: 'one' }], ['two', { requestId: 'two' }]]);
  });

  it('is nobody’s outside of it, and of what it left behind', async () => {
    let goOn = (): void => {};
    let left: Promise<unknown> | undefined;
    await inRequest('one', async () => {
      left = new Promise<void>((resolve) => { goOn = resolve; }).then(() => requestNow());
      await Promise.resolve();
    });
    expect(requestNow()).to.deep.equal({});
    goOn();
    expect(await left).to.deep.equal({});
  });
});
