import { expect } from 'chai';
import { OutputAfterMark } from '../../../src/cli/common/typed-command.ts';
import { AgentFrames } from '../../../src/contracts/agent/agent-frames.ts';
import { EventReader } from '../../../src/contracts/agent/agent-stats.ts';
import { encodeFrame, FrameReader } from '../../../src/embedded/spawner/frames.ts';
import { LineSplitter } from '../../../src/k8s/api/watch-stream.ts';
import { LogLines } from '../../../src/k8s/logs/log-source.ts';
import { PieceReader } from '../../../src/contracts/agent/process-pieces.ts';
import { ExecOutput } from '../../../src/k8s/streams/exec-output.ts';

const PIECE_BYTES = 16;
const BYTES = 1 << 20;
/**
 * Bytes that a reader may copy, search and decode for each byte of its stream. A reader that does
 * so with all it has for each piece comes to thousands.
 */
const MOST_TIMES = 6;

const text = Buffer.alloc(BYTES, 'a');
const repeated = (part: Buffer): Buffer =>
  Buffer.concat(Array.from({ length: Math.ceil(BYTES / part.length) }, () => part));
const line = Buffer.alloc(64 << 10, 'a');
line.writeUInt8(10, line.length - 1);
const headed = (head: readonly number[], bodyBytes: number): Buffer =>
  Buffer.concat([Buffer.from(head), Buffer.alloc(bodyBytes)]);

const drained = (frames: Iterable<unknown>): void => {
  for (const _ of frames);
};

/** What each reader is given, and how: its longest line or frame, again and again. */
const READERS: Readonly<
  Record<string, readonly [Buffer, (pieces: Iterable<Buffer>) => Promise<unknown>]>
> = {
  "a process's record": [
    headed(['r'.charCodeAt(0), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0], BYTES),
    each(() => {
      const reader = new PieceReader();
      return (piece) => drained(reader.push(piece));
    }),
  ],
  "a command's output": [
    text,
    each(() => {
      const output = new ExecOutput('token', BYTES);
      return (piece) => output.stderr(piece);
    }),
  ],
  "a container's log": [
    repeated(line),
    each(() => {
      const lines = new LogLines();
      return (piece) => lines.push(piece);
    }),
  ],
  'a watch of the API server': [
    text,
    each(() => {
      const lines = new LineSplitter(BYTES);
      return (piece) => lines.push(piece);
    }),
  ],
  'frames of the spawner': [
    encodeFrame(0, 0, text),
    each(() => {
      const reader = new FrameReader();
      return (piece) => drained(reader.feed(piece));
    }),
  ],
  'frames of the agent for files': [
    Buffer.concat([Buffer.of(0), repeated(headed(['X'.charCodeAt(0), 0, 0, 0xff, 0xff], 0xffff))]),
    each(() => {
      const frames = new AgentFrames({
        greeted: () => {},
        frame: () => {},
        data: () => {},
        rawEnded: () => {},
        malformed: () => {
          throw new Error('malformed');
        },
      });
      return (piece) => frames.feed(piece);
    }),
  ],
  'events of the agent for files': [
    repeated(headed(['c'.charCodeAt(0), 0, 0xff, 0xff], 0xffff)),
    each(() => {
      const events = new EventReader();
      return (piece) => events.feed(piece);
    }),
  ],
  'a terminal before its mark': [
    text.subarray(0, 256 << 10),
    each(() => {
      const output = new OutputAfterMark();
      return (piece) => output.feed(piece);
    }),
  ],
};

function each(begin: () => (piece: Buffer) => unknown) {
  return async (pieces: Iterable<Buffer>): Promise<void> => {
    const push = begin();
    for (const piece of pieces) push(piece);
  };
}

function* cut(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

interface Called {
  readonly self: Buffer;
  readonly args: readonly unknown[];
  readonly result: unknown;
}

/** Counts the bytes that are copied, searched and decoded meanwhile. */
const handledBy = async (run: () => Promise<unknown>): Promise<number> => {
  let bytes = 0;
  const restored: (() => void)[] = [];
  /** Counts, for each call of a method, what `of` says of its object, arguments and result. */
  const count = (on: object, name: string, of: (call: Called) => number) => {
    const target = on as Record<string, (...args: unknown[]) => unknown>;
    const own = target[name];
    if (!own) throw new Error(`no such method: ${name}`);
    target[name] = function (this: Buffer, ...args: unknown[]) {
      const result = own.apply(this, args);
      bytes += of({ self: this, args, result });
      return result;
    };
    restored.push(() => (target[name] = own));
  };
  count(Buffer, 'concat', ({ result }) => (result as Buffer).length);
  count(Buffer.prototype, 'copy', ({ result }) => Number(result));
  count(
    Buffer.prototype,
    'indexOf',
    ({ self, args: [, from = 0], result }) =>
      (Number(result) < 0 ? self.length : Number(result)) - Number(from),
  );
  count(Buffer.prototype, 'includes', ({ self }) => self.length);
  count(
    Buffer.prototype,
    'toString',
    ({ self, args: [, from = 0, to = self.length] }) => Number(to) - Number(from),
  );
  count(JSON, 'parse', ({ args: [text] }) => String(text).length);
  try {
    await run();
  } finally {
    for (const restore of restored) restore();
  }
  return bytes;
};

describe('a stream in small pieces', () => {
  for (const [name, [bytes, read]] of Object.entries(READERS))
    it(`costs by length, not by pieces: ${name}`, async () => {
      const handled = await handledBy(() => read(cut(bytes)));
      expect(handled / bytes.length).to.be.below(MOST_TIMES);
    });
});
