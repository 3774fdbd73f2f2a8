import { expect } from 'chai';
import { Permits } from '../../src/lib/permits.ts';

describe('permits', () => {
  const refuse = (kind: string, most: number) => new Error(`${kind} has ${most}`);

  it('are counted by the key of each kind until they are released', () => {
    const permits = new Permits({ sandbox: 1, tenant: 2 });
    const giveBack = permits.take({ sandbox: 'a', tenant: 'blue' }, refuse);
    permits.take({ sandbox: 'b', tenant: 'blue' }, refuse);

    expect(() => permits.take({ sandbox: 'a', tenant: 'red' }, refuse)).to.throw('sandbox has 1');
    expect(() => permits.take({ sandbox: 'c', tenant: 'blue' }, refuse)).to.throw('tenant has 2');
    expect(permits.isFull('sandbox', 'a')).to.equal(true);
    expect(permits.isFull('tenant', 'red')).to.equal(false);
    giveBack();
    expect(permits.full({ sandbox: 'a', tenant: 'blue' })).to.equal(undefined);
  });

  it('take nothing of one kind if another is full', () => {
    const permits = new Permits({ sandbox: 1, tenant: 1 });
    permits.take({ sandbox: 'a', tenant: 'blue' }, refuse);

    expect(() => permits.take({ sandbox: 'b', tenant: 'blue' }, refuse)).to.throw();
    permits.take({ sandbox: 'b', tenant: 'red' }, refuse);
  });

  it('are released once, even if the release is repeated', () => {
    const permits = new Permits({ tenant: 2 });
    const giveBack = permits.take({ tenant: 'blue' }, refuse);
    permits.take({ tenant: 'blue' }, refuse);
    giveBack();
    giveBack();
    permits.take({ tenant: 'blue' }, refuse);

    expect(permits.full({ tenant: 'blue' })).to.deep.include({ kind: 'tenant', most: 2 });
  });
});
