import { expect } from 'chai';
import { JoinedReads } from '../../src/lib/joined-reads.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('joined reads', () => {
  const turn = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });
  /** Reads that a test ends, each with its number. */
  const aReader = () => {
    const reads = new JoinedReads();
    const ends: { readonly good: () => void; readonly bad: () => void }[] = [];
    const read = (key = 'a'): Promise<number> =>
      reads.read(
        key,
        () =>
          new Promise((resolve, reject) => {
            const number = ends.length;
            ends.push({
              good: () => resolve(number),
              bad: () => reject(new Error(`read ${number}`)),
            });
          }),
      );
    return { read, ends };
  };

  it('are separate if they come one after the other', async () => {
    const { read, ends } = aReader();
    const first = read();
    ends[0]?.good();
    expect(await first).to.equal(0);
    await turn();
    const second = read();
    ends[1]?.good();

    expect(await second).to.equal(1);
  });

  it('share the next read if they come during one', async () => {
    const { read, ends } = aReader();
    const first = read();
    const later = [read(), read(), read()];
    const other = read('b');
    expect(ends).to.have.length(2);
    ends[0]?.good();
    await first;
    await turn();
    expect(ends).to.have.length(3);
    ends[2]?.good();
    ends[1]?.good();

    expect(await Promise.all(later)).to.deep.equal([2, 2, 2]);
    expect(await other).to.equal(1);
  });

  it('do not wait for a slow read', async () => {
    const { read, ends } = aReader();
    const first = read();
    const second = read();
    await eventually(() => ends.length === 2, 'the second begins');
    ends[1]?.good();
    expect(await second).to.equal(1);
    ends[0]?.good();

    expect(await first).to.equal(0);
  });

  it('fail together, without an effect on later reads', async () => {
    const { read, ends } = aReader();
    const first = rejection(read());
    const later = [rejection(read()), rejection(read())];
    ends[0]?.bad();
    expect((await first).message).to.equal('read 0');
    await turn();
    ends[1]?.bad();
    expect((await Promise.all(later)).map(({ message }) => message)).to.deep.equal([
      'read 1',
      'read 1',
    ]);
    await turn();
    const last = read();
    ends[2]?.good();

    expect(await last).to.equal(2);
  });

  it('leave nothing behind, in any order of events', async () => {
    const reads = new JoinedReads();
    let done = 0;
    const all = Array.from({ length: 1_000 }, async (_, n) => {
      if (n % 7 === 0) await turn();
      const asked = done;
      const began = await reads.read(`key ${n % 3}`, async () => {
        const at = done;
        await turn();
        done += 1;
        return at;
      });
      expect(began).to.be.at.least(asked);
    });
    await Promise.all(all);

    expect(done).to.be.below(100);
  });
});
