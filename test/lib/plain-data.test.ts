import { expect } from 'chai';
import { isSameData, omitUndefined } from '../../src/lib/plain-data.ts';

describe('isSameData', () => {
  const data = { pool: { name: 'a', counts: [1, 2], mark: null }, gated: true };

  it('returns true for equal data', () => {
    expect(isSameData(data, structuredClone(data))).to.equal(true);
  });

  it('ignores undefined fields, on either side and at any depth', () => {
    const more = { pool: { ...data.pool, tag: undefined }, gated: true, size: undefined };

    expect(isSameData(data, more)).to.equal(true);
    expect(isSameData(more, data)).to.equal(true);
  });

  const others: readonly (readonly [string, unknown])[] = [
    ['another value', { ...data, gated: false }],
    ['a field less', { pool: data.pool }],
    ['a field more', { ...data, size: 0 }],
    ['null for none', { ...data, size: null }],
    ['a longer list', { ...data, pool: { ...data.pool, counts: [1, 2, undefined] } }],
    ['another order', { ...data, pool: { ...data.pool, counts: [2, 1] } }],
    ['an object for a list', { ...data, pool: { ...data.pool, counts: { 0: 1, 1: 2 } } }],
    ['a field that objects inherit', { ...data, ['constructor']: Object }],
    ['a prototype as a field', { ...data, ['__proto__']: {} }],
  ];
  for (const [how, other] of others)
    it(`returns false for ${how}`, () => {
      expect(isSameData(data, other)).to.equal(false);
      expect(isSameData(other, data)).to.equal(false);
    });
});

describe('omitUndefined', () => {
  it('keeps the spread fields of an object', () => {
    expect({ cpu: 1, ...omitUndefined({ cpu: undefined, memory: 2 }) }).to.deep.equal({
      cpu: 1,
      memory: 2,
    });
  });
});
