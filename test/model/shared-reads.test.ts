import { expect } from 'chai';
import { SharedReads } from '../../src/lib/shared-reads.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

describe('shared uncached reads', () => {
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });
  const aReader = () => {
    const clock = new TestClock();
    const read: string[] = [];
    const reads = new SharedReads({
      clock,
      read: async (key) => {
        read.push(key);
        return `${key} ${read.length}`;
      },
    });
    return { clock, read, reads };
  };

  it('serve all callers that ask before the read begins', async () => {
    const { read, reads } = aReader();
    expect(await Promise.all([reads.read('a'), reads.read('a'), reads.read('b')])).to.deep.equal([
      'a 1',
      'a 1',
      'b 2',
    ]);
    expect(read).to.deep.equal(['a', 'b']);
  });

  it('happen at most once in 250 ms per key, and are never older than the request', async () => {
    const { clock, read, reads } = aReader();
    await reads.read('a');
    const later = Promise.all([reads.read('a'), reads.read('a')]);
    clock.advance(249);
    await turn();
    expect(read).to.deep.equal(['a']);
    clock.advance(1);
    expect(await later).to.deep.equal(['a 2', 'a 2']);
  });

  it('report a failure to all callers, and are repeated for the next one', async () => {
    const clock = new TestClock();
    let fails = true;
    const reads = new SharedReads({
      clock,
      read: async () => {
        if (fails) throw new Error('out of reach');
        return 'there';
      },
    });
    const results = await Promise.allSettled([reads.read('a'), reads.read('a')]);
    expect(results.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    fails = false;
    clock.advance(250);
    expect(await reads.read('a')).to.equal('there');
  });
});
