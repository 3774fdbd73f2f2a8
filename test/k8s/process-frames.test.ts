import { expect } from 'chai';
import fc from 'fast-check';
import {
  FramesSpoilt,
  OutputFrames,
  type OutputFrame,
} from '../../src/k8s/processes/output-frames.ts';

const PRINTED = Buffer.from(
  's 100 0\no 100 6\nhello\ne 106 4\nerr\ns 110 0\no 120 3\nabcend\np1 E 7 1 2 3 0 {}\n',
);

const read = (pieces: readonly Buffer[], position?: number): readonly OutputFrame[] => {
  const frames = new OutputFrames(position);
  return pieces.flatMap((piece) => [...frames.push(piece)]);
};

/** Pieces of one stream that follow each other as one: where they are cut means nothing. */
const joined = (frames: readonly OutputFrame[]): readonly string[] =>
  frames.reduce<string[]>((texts, frame) => {
    const text =
      frame.kind === 'bytes'
        ? `${frame.stream} ${String(frame.bytes)}`
        : frame.kind === 'dropped'
          ? `dropped ${frame.bytes ?? ''}`
          : frame.kind;
    const before = texts.at(-1);
    if (frame.kind === 'bytes' && before?.startsWith(`${frame.stream} `))
      return [...texts.slice(0, -1), before + String(frame.bytes)];
    return [...texts, text];
  }, []);

describe('the output of a process in a Pod', () => {
  it('is read alike wherever it is cut, and says what is missing', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(PRINTED.length)), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), PRINTED.length];
        const pieces = at.slice(1).map((end, i) => PRINTED.subarray(at[i], end));
        expect(joined(read([Buffer.from('at 0\n'), ...pieces]))).to.deep.equal([
          'dropped 100',
          'stdout hello\n',
          'stderr err\n',
          'dropped 10',
          'stdout abc',
          'ended',
        ]);
      }),
    );
  });

  it('is read on from any position, also within a piece', () => {
    const frames = read([PRINTED], 103);
    expect(joined(frames).slice(0, 2)).to.deep.equal(['stdout lo\n', 'stderr err\n']);
    expect(frames[0]).to.include({ next: '106' });
  });

  it('begins where the script says when nobody says where', () => {
    expect(joined(read([Buffer.from('at 110\n'), PRINTED])).slice(0, 2)).to.deep.equal([
      'dropped 10',
      'stdout abc',
    ]);
  });

  it('is spoilt by heads without end that say nothing new', () => {
    const heads = Buffer.from('s 0 0\n'.repeat(10_000));
    const frames = new OutputFrames(0);
    let given = 0;
    expect(() => {
      for (; given < 100 * heads.length; given += heads.length) [...frames.push(heads)];
    }).to.throw(FramesSpoilt);
    const whole = Buffer.from(`o 0 ${4 << 20}\n`);
    const piece = Buffer.alloc(64 << 10);
    expect(read([whole, ...Array.from({ length: 64 }, () => piece)])).to.have.length(64);
  });

  it('is spoilt by what is no head, however long that is', () => {
    for (const spoilt of ['x 1 2\n', 'o 1\n', `${'9'.repeat(100)}`, 'o -1 2\n'])
      expect(() => read([Buffer.from(spoilt)])).to.throw(FramesSpoilt);
  });
});
