import { expect } from 'chai';
import { CHUNKS_PER_TURN, SurplusTurns } from '../../../src/embedded/spawner/surplus-turns.ts';

describe('turns to read surplus output', () => {
  let due: (() => void)[];
  let turns: SurplusTurns;
  beforeEach(() => {
    due = [];
    turns = new SurplusTurns((turn) => due.push(turn));
  });
  const nextTurn = (): void => {
    const now = due.splice(0);
    expect(now).to.have.length(1);
    for (const turn of now) turn();
  };

  it('all go to a single stream, a few chunks each', () => {
    const read: number[] = [];
    turns.wait((chunks) => read.push(chunks));
    expect(read).to.deep.equal([]);
    nextTurn();
    expect(read).to.deep.equal([CHUNKS_PER_TURN]);
    expect(due).to.have.length(0);
  });

  it('read a bounded number of chunks in total, from all streams in turn', () => {
    const read = new Map<number, number>();
    const endless = (stream: number): void => {
      turns.wait((chunks) => {
        read.set(stream, (read.get(stream) ?? 0) + chunks);
        endless(stream);
      });
    };
    for (let stream = 0; stream < 40; stream += 1) endless(stream);
    for (let turn = 1; turn <= 50; turn += 1) {
      nextTurn();
      const inAll = [...read.values()].reduce((sum, chunks) => sum + chunks, 0);
      expect(inAll).to.be.at.most(turn * CHUNKS_PER_TURN);
    }
    expect([...read.values()]).to.deep.equal(Array.from({ length: 40 }, () => 10));
  });

  it('come to each tenant, however many streams others have', () => {
    const read: string[] = [];
    for (let stream = 0; stream < 1_000; stream += 1) turns.wait(() => read.push('many'), 'many');
    turns.wait(() => read.push('one'), 'one');
    nextTurn();
    expect(read).to.include('one').and.have.length(CHUNKS_PER_TURN);
  });
});
