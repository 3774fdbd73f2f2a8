import { expect } from 'chai';
import fc from 'fast-check';
import { LogLines } from '../../src/k8s/logs/log-source.ts';
import {
  BEGINNING,
  LogResumption,
  placeAfter,
  placeOf,
  placeText,
  type LogPiece,
} from '../../src/k8s/logs/log-place.ts';
import { LogTailWindow } from '../../src/k8s/logs/log-tail.ts';

const second = (n: number): string => `2026-01-31T12:00:${String(n).padStart(2, '0')}`;
const texts = (pieces: readonly { readonly text: Buffer }[]): readonly string[] =>
  pieces.map(({ text }) => String(text));

describe("lines of a Pod's log", () => {
  it('are split the same way in whatever pieces the bytes arrive', () => {
    const log = Buffer.from(
      `${second(1)}.5Z one\n${second(1)}Z \nno time at all\n${second(2)}.123456789+02:00 two words é\n`,
    );
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 20 })), (sizes) => {
        const lines = new LogLines();
        const pieces: LogPiece[] = [];
        let at = 0;
        for (const size of [...sizes, log.length]) {
          pieces.push(...lines.push(log.subarray(at, at + size)));
          at += size;
        }
        expect(texts(pieces)).to.deep.equal(['one', '', 'two words é']);
        expect(pieces.map(({ time }) => time)).to.deep.equal([
          `${second(1)}.500000000Z`,
          `${second(1)}.000000000Z`,
          '2026-01-31T10:00:02.123456789Z',
        ]);
      }),
    );
  });

  it('are returned in parts if they are long, without more memory than a part', () => {
    const lines = new LogLines();
    const pieces = [...lines.push(Buffer.from(`${second(1)}.0Z `))];
    for (let i = 0; i < 100; i += 1) pieces.push(...lines.push(Buffer.alloc(10_000, 'x')));
    pieces.push(...lines.push(Buffer.from(`y\n${second(2)}.0Z next\n`)));
    expect(pieces.length).to.be.greaterThan(10);
    expect(Math.max(...pieces.map(({ text }) => text.length))).to.be.lessThan(80_000);
    expect(pieces.map(({ partial }) => partial)).to.deep.equal([
      ...pieces.slice(2).map(() => true),
      false,
      false,
    ]);
    expect(pieces.slice(0, -1).reduce((size, { text }) => size + text.length, 0)).to.equal(
      1_000_001,
    );
  });
});

describe("positions in a Pod's log", () => {
  /** Few times, so that many lines share one; some lines are long. */
  const log = fc
    .array(
      fc.record({
        time: fc.integer({ min: 0, max: 5 }),
        length: fc.integer({ min: 0, max: 9 }),
        parts: fc.integer({ min: 1, max: 3 }),
      }),
      { minLength: 1, maxLength: 30 },
    )
    .map((lines) =>
      lines.toSorted((a, b) => a.time - b.time).map((line, index) => ({ ...line, index })),
    );
  const piecesOf = (
    lines: readonly {
      readonly time: number;
      readonly length: number;
      readonly parts: number;
      readonly index: number;
    }[],
  ): readonly LogPiece[] =>
    lines.flatMap(({ time, length, parts, index }) =>
      Array.from({ length: parts }, (_, part) => ({
        time: `${second(time)}.000000000Z`,
        text: Buffer.from(`${index}`.padEnd(length + 2, '.')),
        partial: part < parts - 1,
      })),
    );
  const whole = (pieces: readonly LogPiece[]): string =>
    pieces.map(({ text, partial }) => String(text) + (partial ? '' : '\n')).join('');

  it('let a reader resume anywhere, without a repeated or missing byte', () => {
    fc.assert(
      fc.property(log, fc.nat(), (lines, cut) => {
        const pieces = piecesOf(lines);
        const given = pieces.slice(0, cut % (pieces.length + 1));
        const place = placeOf(placeText(given.reduce(placeAfter, BEGINNING)));
        const resumption = new LogResumption(place);
        const rest = pieces.flatMap((piece) => resumption.admit(piece) ?? []);
        expect(whole(given) + whole(rest)).to.equal(whole(pieces));
        expect(resumption.isBroken).to.equal(false);
      }),
    );
  });

  it('report that the log before them is gone', () => {
    const pieces = piecesOf([
      { time: 1, length: 1, parts: 1, index: 0 },
      { time: 2, length: 1, parts: 1, index: 1 },
    ]);
    const resumption = new LogResumption({ time: `${second(1)}.000000000Z`, count: 1, bytes: 0 });
    expect(
      resumption.admit(pieces[1] ?? { time: '', text: Buffer.alloc(0), partial: false }),
    ).to.equal(pieces[1]);
    expect(resumption.isBroken).to.equal(true);
  });

  it('mean the beginning if they are malformed', () => {
    for (const text of ['', '0', 'x', `${second(1)}_1_1`])
      expect(placeOf(text)).to.equal(BEGINNING);
  });
});

describe("the end of a Pod's log", () => {
  const tail = (
    pieces: readonly LogPiece[],
    part: {
      readonly tailLines?: number;
      readonly limitBytes?: number;
      readonly since?: string;
    } = {},
  ) => {
    const window = new LogTailWindow({ tailLines: 100, limitBytes: 1_000, since: '', ...part });
    for (const piece of pieces) window.push(piece);
    const { lines, truncated } = window.tail('0');
    return { lines: texts(lines), truncated, place: placeText(window.place) };
  };
  const line = (time: number, text: string, partial = false): LogPiece => ({
    time: `${second(time)}.000000000Z`,
    text: Buffer.from(text),
    partial,
  });

  it('consists of the last whole lines', () => {
    const pieces = [line(1, 'o', true), line(1, 'ne'), line(2, 'two'), line(2, 'three')];
    expect(tail(pieces)).to.deep.equal({
      lines: ['one', 'two', 'three'],
      truncated: false,
      place: `${second(2)}.000000000Z_2_0`,
    });
    expect(tail(pieces, { tailLines: 2 })).to.deep.include({
      lines: ['two', 'three'],
      truncated: true,
    });
    expect(tail(pieces, { since: `${second(2)}.000000000Z` })).to.deep.include({
      lines: ['two', 'three'],
      truncated: false,
    });
  });

  it('is bounded, and loses the beginning of a longer line', () => {
    expect(tail([line(1, 'x'.repeat(900)), line(2, 'y'.repeat(500))])).to.deep.include({
      lines: ['y'.repeat(500)],
      truncated: true,
    });
    const parts = Array.from({ length: 100 }, () => line(1, 'z'.repeat(100), true));
    expect(tail([...parts, line(1, 'end')])).to.deep.include({
      lines: [`${'z'.repeat(997)}end`],
      truncated: true,
    });
  });

  it('is empty if nothing was printed', () => {
    expect(tail([])).to.deep.equal({ lines: [], truncated: false, place: '0' });
  });
});
