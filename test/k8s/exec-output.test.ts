import { expect } from 'chai';
import fc from 'fast-check';
import { NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { ExecOutput } from '../../src/k8s/streams/exec-output.ts';

const TOKEN = `${'0f'.repeat(16)} `;

describe('the output of a command in a Pod', () => {
  const begun = (limit: number, gathered?: (bytes: Buffer) => void): ExecOutput => {
    const output = new ExecOutput(TOKEN, limit, gathered);
    output.stdout(Buffer.from('41\n'));
    return output;
  };

  it('is complete without its end marker, in whatever pieces it arrives', () => {
    const words = fc.array(fc.constantFrom('a', '\n', TOKEN, TOKEN.slice(0, 9), '7', '12\n'), {
      maxLength: 8,
    });
    const isPlain = (text: string): boolean => !new RegExp(`${TOKEN}\\d{1,3}\\n`).test(text);
    const text = words.map((each) => each.join('')).filter(isPlain);
    fc.assert(
      fc.property(
        text,
        fc.string({ maxLength: 9 }),
        fc.integer({ min: 1, max: 50 }),
        (a, b, size) => {
          fc.pre(isPlain(a + TOKEN) && !/^\d/.test(b));
          const output = begun(1_000);
          const whole = Buffer.from(`${a}${TOKEN}130\n${b}`);
          for (const push of ['stdout', 'stderr'] as const)
            for (let at = 0; at < whole.length; at += size)
              output[push](whole.subarray(at, at + size));
          const { stdout, stderr, truncated } = output.taken();
          expect([output.exitCode, output.isWhole, truncated]).to.deep.equal([130, true, false]);
          expect([String(stdout), String(stderr)]).to.deep.equal([a + b, a + b]);
        },
      ),
    );
  });

  it('is counted as it arrives, and stored up to its limit, even behind a fake marker', () => {
    for (const behind of ['', '12', 'x', '1234']) {
      let counted = 0;
      const output = begun(10_000, (bytes) => (counted += bytes.length));
      output.stdout(Buffer.from(TOKEN + behind));
      for (let pieces = 0; pieces < 100; pieces += 1) output.stdout(Buffer.alloc(1_000, 'y'));
      expect(counted).to.equal(10_000);
      const { stdout, truncated } = output.taken();
      expect([stdout.length, truncated, output.exitCode]).to.deep.equal([10_000, true, undefined]);
      expect(String(stdout).startsWith(`${TOKEN}${behind}yyy`)).to.equal(true);
    }
  });

  it('is empty if the answer contains no process id', () => {
    const output = new ExecOutput(TOKEN, 10);
    const listen = (): void => {
      for (let pieces = 0; pieces < 9; pieces += 1) output.stdout(Buffer.alloc(8, 'x'));
    };
    expect(listen).to.throw(NotJoinable);
  });
});
