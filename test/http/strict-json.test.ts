import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { parseStrictJson } from '../../src/http/corridor/strict-json.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';

const MODULE = new URL('../../src/http/corridor/strict-json.ts', import.meta.url).href;

const parse = (text: string | Buffer): unknown => parseStrictJson(Buffer.from(text));

const refused = (text: string | Buffer): Refusal => {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error(`it was read: ${text.toString().slice(0, 80)}`);
};

describe('strict JSON', () => {
  it('reads the same as JSON.parse, except for its refusals', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), (text) => {
        let value: unknown;
        try {
          value = parse(text);
        } catch (error) {
          expect(error).to.be.instanceOf(Refusal);
          expect((error as Refusal).message).to.match(/not allowed|out of range|surrogate/);
          return;
        }
        expect(value).to.deep.equal(JSON.parse(text));
      }),
      { numRuns: runs(500) },
    );
  });

  it('reads or refuses any bytes, without other exceptions', () => {
    const unit = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      '\\',
      'u',
      'd',
      '8',
      '0',
      ',',
      ':',
      '-',
      '1',
      '.',
      'e',
      ' ',
      'a',
      'true',
      'null',
      '"a":',
      '\u0000',
      'é',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(unit, { maxLength: 40 }).map((parts) => parts.join('')),
          fc.uint8Array({ maxLength: 40 }),
        ),
        (input) => {
          const bytes = Buffer.from(input as string);
          let expected: unknown;
          try {
            expected = JSON.parse(
              new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
            );
          } catch {
            refused(bytes);
            return;
          }
          try {
            expect(parseStrictJson(bytes)).to.deep.equal(expected);
          } catch (error) {
            if (!(error instanceof Refusal)) throw error;
          }
        },
      ),
      { numRuns: runs(2_000) },
    );
  });

  for (const [text, field] of [
    ['{"a":1,"a":2}', 'a'],
    ['{"a":1,"\\u0061":2}', 'a'],
    ['{"b":{"c":[0,{"d":1,"x":[],"d":{}}]}}', 'b.c[1].d'],
    ['[{"":0,"":0}]', '[0].'],
    ['{"__proto__":{}}', '__proto__'],
    ['{"a":{"constructor":1}}', 'a.constructor'],
    ['[[{"prototype":1}]]', '[0][0].prototype'],
    ['{"\\u005f_proto__":1}', '__proto__'],
    ['{"a":1e400}', 'a'],
    ['{"a":-1e400}', 'a'],
    ['{"a":9007199254740992}', 'a'],
    ['{"a":[1,-9007199254740993]}', 'a[1]'],
    ['{"a":1e300}', 'a'],
    [`{"a":${'9'.repeat(100_000)}}`, 'a'],
    ['{"a":"\\ud800"}', 'a'],
    ['{"a":"\\udc00\\ud800"}', 'a'],
    ['{"\\ud800":1}', 'body'],
    ['{"a":["x","\\uD83D"]}', 'a[1]'],
    ['', 'body'],
    [' ', 'body'],
    ['{', 'body'],
    ['{"a":}', 'body'],
    ['{"a":1,}', 'body'],
    ['{a:1}', 'body'],
    ["{'a':1}", 'body'],
    ['[1,]', 'body'],
    ['01', 'body'],
    ['+1', 'body'],
    ['NaN', 'body'],
    ['{"a":"\u0000"}', 'body'],
    ['"\\x"', 'body'],
    ['{} {}', 'body'],
    ['{}x', 'body'],
    ['}', 'body'],
    [']{', 'body'],
    ['\ufeff{}', 'body'],
    ['{"a":1}//', 'body'],
    ['"open', 'body'],
  ] as const) {
    it(`refuses ${JSON.stringify(text.slice(0, 40))}`, () => {
      const refusal = refused(text);
      expect(refusal.code).to.equal('INVALID_ARGUMENT');
      expect(refusal.detail).to.deep.equal({ field });
    });
  }

  it('accepts the same key in different objects, and apparent faults inside strings', () => {
    const text =
      '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"c":"{\\"a\\":1,\\"a\\":2} __proto__ 1e999 \\\\","d":"\\ud83d\\ude00","proto":-0.5e-3}';
    expect(parse(text)).to.deep.equal(JSON.parse(text));
  });

  it('accepts 64 levels and refuses 65, of either kind', () => {
    expect(() => parse('['.repeat(64) + ']'.repeat(64))).not.to.throw();
    expect(() => parse(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`)).not.to.throw();
    for (const text of [
      '['.repeat(65),
      '['.repeat(500_000),
      `${'{"a":'.repeat(65)}1`,
      '{"a":[{"a":['.repeat(17),
    ]) {
      expect(refused(text).message).to.contain('nesting is deeper than 64');
    }
  });

  it('refuses bytes that are not UTF-8', () => {
    for (const bytes of [
      [0xff],
      [0x22, 0xc3, 0x22],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
      [0x22, 0xc0, 0xaf, 0x22],
      [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22],
      [0x7b, 0x00, 0x7d, 0x00],
    ]) {
      expect(refused(Buffer.from(bytes)).detail).to.deep.equal({ field: 'body' });
    }
  });

  it('names a field of bounded length', () => {
    const refusal = refused(`{"${'k'.repeat(100_000)}":{"__proto__":1}}`);
    expect(String(refusal.detail?.field)).to.have.length.of.at.most(256);
    expect(refusal.message).to.have.length.below(400);
  });

  it('reads a megabyte of anything in linear time', () => {
    const textsOf = (size: number): readonly string[] => [
      `[${'{"a":1},'.repeat(size / 8)}0]`,
      `{${Array.from({ length: size / 10 }, (_, n) => `"${n}":0`).join(',')}}`,
      `["${'\\u00e9'.repeat(size / 6)}"]`,
      `["${'\\\\'.repeat(size / 2)}"]`,
      `[${'"\\n",'.repeat(size / 5)}0]`,
      `[${'1,'.repeat(size / 2)}0]`,
      '-'.repeat(size),
      '1'.repeat(size),
      '"'.repeat(size),
      '"\\'.repeat(size / 2),
    ];
    const tookMs = (text: string, times: number): number => {
      const began = performance.now();
      for (let n = 0; n < times; n += 1)
        try {
          parse(text);
        } catch (error) {
          expect(error).to.be.instanceOf(Refusal);
        }
      return performance.now() - began;
    };
    // As many bytes at once and in a hundred texts, in turn; the quickest of each.
    const wholes = textsOf(1_000_000);
    for (const [at, part] of textsOf(10_000).entries()) {
      const whole = wholes[at] ?? '';
      const rounds = Array.from(
        { length: 3 },
        () => [tookMs(part, 100), tookMs(whole, 1)] as const,
      );
      const [inParts, atOnce] = [0, 1].map((which) =>
        Math.min(...rounds.map((round) => round[which] ?? NaN)),
      );
      expect((atOnce ?? NaN) / (inParts ?? NaN), part.slice(0, 20)).to.be.below(8);
    }
  });

  it('reads a megabyte of objects without a backslash in linear time, even in a new process', () => {
    const code = `
      import { parseStrictJson } from ${JSON.stringify(MODULE)};
      const textOf = (size) => Buffer.from('[' + '{"a":1},'.repeat(size / 8) + '0]');
      const tookMs = (text, times) => {
        const began = performance.now();
        for (let n = 0; n < times; n += 1) parseStrictJson(text);
        return performance.now() - began;
      };
      const [part, whole] = [textOf(10_000), textOf(1_000_000)];
      const rounds = Array.from({ length: 5 }, () => [tookMs(part, 100), tookMs(whole, 1)]);
      const least = (which) => Math.min(...rounds.slice(1).map((round) => round[which]));
      console.log(least(1) / least(0));`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '-e', code],
      { encoding: 'utf8', timeout: NEVER_COMES_MS },
    );
    expect(Number(stdout.trim() || NaN), stderr).to.be.below(8);
  });
});
