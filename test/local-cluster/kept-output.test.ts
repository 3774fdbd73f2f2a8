import { expect } from 'chai';
import { KeptOutput } from '../../local-cluster/kept-output.ts';

describe('what is kept of an output', () => {
  it('is all of it while it is short, and its end later', () => {
    const kept = new KeptOutput(10);
    kept.add('abc');
    expect(kept.text).to.equal('abc');
    for (const letter of 'defghijklmnopqrstuvwxyz') kept.add(letter);
    expect(kept.text).to.equal('qrstuvwxyz');
  });

  it('is the end of one chunk that is longer', () => {
    const kept = new KeptOutput(3);
    kept.add('abcdefghij');
    expect(kept.text).to.equal('hij');
  });
});
