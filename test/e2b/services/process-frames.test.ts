import { fromJsonString, toJsonString } from '@bufbuild/protobuf';
import { expect } from 'chai';
import fc from 'fast-check';
import { StartResponseSchema } from '../../../src/e2b/services/generated/process.ts';
import { processFrames } from '../../../src/e2b/services/process/process-events.ts';
import type { ProcessFact, ProcessOutput } from '../../../src/model/process.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { runs } from '../../support/harness/runs.ts';

const FACT: ProcessFact = {
  ...{ processId: 'p', pid: 7, argv: ['cat'], status: 'Running' },
  ...{ startedAt: 0, tty: false, stdin: true },
};

/** The messages that the frames of a process hold. */
const framesOf = async (
  output: readonly ProcessOutput[],
  fact: ProcessFact = FACT,
): Promise<readonly string[]> => {
  const found: string[] = [];
  const follow = {
    fact,
    output: async function* () {
      yield* output;
    },
  };
  const terms = { clock: new TestClock(), everyMs: 1_000, signal: new AbortController().signal };
  for await (const frame of processFrames(follow, terms)) {
    expect(frame[0]).to.equal(0);
    expect(frame.readUInt32BE(1)).to.equal(frame.length - 5);
    found.push(frame.toString('utf8', 5));
  }
  return found;
};

describe('frames of a process, which are made by hand', () => {
  it('are the very JSON that the library makes of the message that it reads there', async () => {
    const stream = fc.constantFrom('stdout' as const, 'stderr' as const);
    const property = fc.asyncProperty(
      fc.array(fc.tuple(stream, fc.uint8Array({ maxLength: 40 }))),
      fc.boolean(),
      fc.integer({ min: 0, max: 255 }),
      fc.constantFrom('KILL', 'HUP', undefined),
      async (printed, tty, exitCode, signal) => {
        const fact: ProcessFact = { ...FACT, tty };
        const end = { ...fact, exitCode, endedAt: 1, ...(signal ? { signal } : {}) };
        const texts = await framesOf(
          [
            ...printed.map(([kind, bytes], at) => ({
              ...{ kind: 'bytes' as const, stream: kind, bytes: Buffer.from(bytes) },
              next: String(at),
            })),
            { kind: 'end', fact: end, next: 'end' },
          ],
          fact,
        );
        const messages = texts.map((text) => fromJsonString(StartResponseSchema, text));

        expect(messages.map((each) => toJsonString(StartResponseSchema, each))).to.deep.equal(
          texts,
        );
        const data = messages.flatMap(({ event }) =>
          event?.event.case === 'data' ? [event.event.value.output] : [],
        );
        const heard = (of: 'stdout' | 'stderr' | 'pty'): Buffer =>
          Buffer.concat(data.flatMap(({ case: kind, value }) => (kind === of ? [value] : [])));
        const said = (of: 'stdout' | 'stderr'): Buffer =>
          Buffer.concat(printed.flatMap(([kind, bytes]) => (kind === of ? [bytes] : [])));
        if (tty) expect(heard('pty')).to.have.length(said('stdout').length + said('stderr').length);
        else
          expect([heard('stdout'), heard('stderr')]).to.deep.equal([
            said('stdout'),
            said('stderr'),
          ]);
        expect(messages.at(-1)?.event?.event.case).to.equal('end');
      },
    );
    await fc.assert(property, { numRuns: runs(200) });
  });
});
