import { expect } from 'chai';
import {
  FIRST_BYTES,
  OutputRing,
  SEGMENT_BYTES,
} from '../../../src/embedded/spawner/processes/output-ring.ts';
import { MemoryShares } from '../../../src/embedded/spawner/processes/processes.ts';
import * as bounds from '../../../src/embedded/spawner/processes/bounds.ts';
import * as model from '../../../src/model/process.ts';

const { KEPT_OUTPUT_BYTES } = bounds;

describe('the ring of process output', () => {
  const aRing = (bounds?: { readonly tenant: number; readonly all: number }) => {
    const shares = new MemoryShares(bounds);
    let held = FIRST_BYTES;
    expect(shares.take('blue', FIRST_BYTES)).to.equal(undefined);
    const ring = new OutputRing({
      take: (bytes) => {
        if (shares.take('blue', bytes) !== undefined) return false;
        held += bytes;
        return true;
      },
      release: (bytes) => {
        shares.release('blue', bytes);
        held -= bytes;
      },
    });
    return { ring, held: () => held };
  };
  const all = (ring: OutputRing, from: number): readonly (readonly [string, string])[] => {
    const cursor = { position: from };
    const pieces: [string, string][] = [];
    for (;;) {
      const piece = ring.read(cursor, 1 << 20);
      if (!piece) return pieces;
      const last = pieces.at(-1);
      if (last?.[0] === piece.stream) last[1] += String(piece.bytes);
      else pieces.push([piece.stream, String(piece.bytes)]);
    }
  };

  it('has the bounds of the contract', () => {
    expect(model).to.include(bounds);
  });

  it('returns both streams in their original order, from any position', () => {
    const { ring } = aRing();
    ring.append('stdout', Buffer.from('one '));
    ring.append('stdout', Buffer.from('two '));
    ring.append('stderr', Buffer.from('bad '));
    ring.append('stdout', Buffer.from('three'));

    expect(all(ring, 0)).to.deep.equal([
      ['stdout', 'one two '],
      ['stderr', 'bad '],
      ['stdout', 'three'],
    ]);
    expect(all(ring, 6)).to.deep.equal([
      ['stdout', 'o '],
      ['stderr', 'bad '],
      ['stdout', 'three'],
    ]);
    expect(all(ring, 17)).to.deep.equal([]);
  });

  it('keeps the promised length, with little overhead', () => {
    const { ring, held } = aRing();
    for (let count = 0; count < 300; count += 1)
      ring.append(count % 2 === 0 ? 'stdout' : 'stderr', Buffer.alloc(10_007, count));

    expect(ring.end).to.equal(300 * 10_007);
    expect(ring.end - ring.start).to.be.at.least(KEPT_OUTPUT_BYTES);
    expect(held()).to.be.at.most(KEPT_OUTPUT_BYTES + 3 * SEGMENT_BYTES);
    const last = { position: ring.end - 1 };
    expect(ring.read(last, 10)?.bytes[0]).to.equal(299 % 256);
  });

  it("takes no memory beyond its tenant's share, and keeps less then", () => {
    const { ring, held } = aRing({ tenant: 3 * SEGMENT_BYTES, all: 1 << 30 });
    for (let count = 0; count < 50; count += 1) ring.append('stdout', Buffer.alloc(20_000));

    expect(held()).to.be.at.most(3 * SEGMENT_BYTES);
    expect(ring.end).to.equal(1_000_000);
    expect(ring.end - ring.start).to.be.at.least(SEGMENT_BYTES);
  });

  it('releases all its memory, even if streams alternate by the byte', () => {
    const { ring, held } = aRing();
    for (let count = 0; count < 40_000; count += 1)
      ring.append(count % 2 === 0 ? 'stdout' : 'stderr', Buffer.from('x'));
    expect(all(ring, ring.end - 4)).to.have.length(4);
    ring.clear();

    expect(held()).to.equal(0);
  });

  it('omits data that was overwritten during the send', () => {
    const { ring } = aRing();
    ring.append('stdout', Buffer.alloc(SEGMENT_BYTES, 'a'));
    const piece = ring.read({ position: 0 }, 100);
    for (let count = 0; count < 40; count += 1)
      ring.append('stdout', Buffer.alloc(SEGMENT_BYTES, 'b'));

    expect(String(piece?.bytes)).to.equal('a'.repeat(100));
    expect(ring.start).to.be.greaterThan(0);
  });
});
