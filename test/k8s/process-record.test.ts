import { expect } from 'chai';
import fc from 'fast-check';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { PieceReader, type ProcessPiece } from '../../src/contracts/agent/process-pieces.ts';
import { readProcess, toldOf } from '../../src/contracts/agent/process-record.ts';

const ORDER = {
  processId: 'a-1',
  tenant: 't',
  argv: ['echo', 'a\nb "c" é'],
  stdin: true,
  tag: 'T',
};
const TOLD = toldOf(ORDER, 1_000);

const number = (value: number | bigint, bytes: number): Buffer => {
  const written = Buffer.alloc(8);
  written.writeBigUInt64BE(BigInt(value));
  return written.subarray(8 - bytes);
};
const recordOf = (
  status: string,
  { code = 0, ms = 0n, id = 'a-1', told = TOLD }: Partial<Parts> = {},
): Buffer =>
  Buffer.concat([
    Buffer.from(status),
    number(7, 4),
    number(code, 4),
    number(ms, 8),
    Buffer.from(`${id}\0${told}`),
  ]);
interface Parts {
  readonly code: number;
  readonly ms: bigint;
  readonly id: string;
  readonly told: string;
}

describe('the record of a process in a Pod', () => {
  it('shows the running command', () => {
    expect(readProcess(recordOf('R'))).to.deep.equal({
      processId: 'a-1',
      pid: 7,
      argv: ORDER.argv,
      startedAt: 1_000,
      tag: 'T',
      tty: false,
      stdin: true,
      status: 'Running',
    });
  });

  it('shows how and when it ended, by the clock of the start', () => {
    expect(readProcess(recordOf('E', { code: 143, ms: 1_750n }))).to.include({
      status: 'Exited',
      exitCode: 143,
      signal: 'TERM',
      endedAt: 2_750,
    });
    const timedOut = readProcess(recordOf('E', { code: 124 }));
    expect(timedOut).to.include({ exitCode: 124, signal: undefined });
  });

  it('has no invalid times or codes, whatever the sandbox sends', () => {
    const fact = readProcess(recordOf('E', { code: 2 ** 32 - 1, ms: 2n ** 64n - 1n }));
    expect(fact).to.include({ status: 'Exited', exitCode: 255 }).and.not.have.property('endedAt');
  });

  it('is rejected if the sandbox sends something else', () => {
    for (const parts of [
      { told: '{}' },
      { told: 'null' },
      { told: '{"argv":[1],"startedAt":1}' },
      { told: '{"argv":["a"],"startedAt":1e300}' },
      { id: '../x' },
      { id: '' },
    ])
      expect(readProcess(recordOf('R', parts)), JSON.stringify(parts)).to.equal(undefined);
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => readProcess(Buffer.from(bytes)) === undefined),
    );
  });
});

const piece = (kind: string, at: number, bytes: string): Buffer =>
  Buffer.concat([Buffer.from(kind), number(at, 8), number(bytes.length, 4), Buffer.from(bytes)]);

describe('process messages from a sandbox', () => {
  const SAID = Buffer.concat([
    piece('a', 100, ''),
    piece('o', 100, 'hello\n'),
    piece('e', 106, 'err\n'),
    piece('r', 0, 'what is known'),
  ]);
  const read = (pieces: readonly Buffer[]): readonly ProcessPiece[] => {
    const reader = new PieceReader();
    return pieces.flatMap((each) => [...reader.push(each)]);
  };

  it('are read the same in whatever pieces they arrive', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(SAID.length)), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), SAID.length];
        const texts: Record<string, string> = {};
        for (const each of read(at.slice(1).map((end, i) => SAID.subarray(at[i], end))))
          if (each.kind === 'bytes') {
            expect(each.at).to.equal(
              { stdout: 100, stderr: 106 }[each.stream] + (texts[each.stream] ?? '').length,
            );
            texts[each.stream] = (texts[each.stream] ?? '') + String(each.bytes);
          } else texts[each.kind] = 'record' in each ? String(each.record) : String(each.at);
        expect(texts).to.deep.equal({
          begins: '100',
          stdout: 'hello\n',
          stderr: 'err\n',
          record: 'what is known',
        });
      }),
    );
  });

  it('are rejected if kind, position or length are impossible', () => {
    const headOf = (kind: string, at: bigint, length: number): Buffer =>
      Buffer.concat([Buffer.from(kind), number(at, 8), number(length, 4)]);
    for (const head of [
      headOf('x', 0n, 1),
      headOf('o', 0n, 0),
      headOf('a', 0n, 1),
      headOf('o', 0n, (64 << 10) + 1),
      headOf('r', 0n, (2 << 20) + 1),
      headOf('e', 2n ** 63n, 1),
    ])
      expect(() => read([head])).to.throw(OutcomeUnknown);
  });
});
