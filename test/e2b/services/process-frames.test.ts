import { fromJsonString, toJsonString } from '@bufbuild/protobuf';
import { Code, type ConnectError } from '@connectrpc/connect';
import { expect } from 'chai';
import fc from 'fast-check';
import { StartResponseSchema } from '../../../src/http/e2b/services/generated/process.ts';
import { processFrames } from '../../../src/http/e2b/services/process/process-events.ts';
import { sandboxEnded } from '../../../src/http/e2b/services/rpc/rpc-errors.ts';
import type { ProcessFact, ProcessOutput } from '../../../src/model/process.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { rejection } from '../../support/harness/rejection.ts';
import { runs } from '../../support/harness/runs.ts';

const FACT: ProcessFact = {
  ...{ processId: 'p', pid: 7, argv: ['cat'], status: 'Running' },
  ...{ startedAt: 0, tty: false, stdin: true },
};

/** The messages that the frames of a process hold. */
const framesOf = async (
  output: readonly ProcessOutput[],
  fact: ProcessFact = FACT,
  gone?: ConnectError,
): Promise<readonly string[]> => {
  const found: string[] = [];
  const follow = {
    fact,
    output: async function* () {
      yield* output;
    },
  };
  const terms = {
    ...{ clock: new TestClock(), everyMs: 1_000, signal: new AbortController().signal },
    endOfSandbox: async () => gone,
  };
  for await (const frame of processFrames(follow, terms)) {
    expect(frame[0]).to.equal(0);
    expect(frame.readUInt32BE(1)).to.equal(frame.length - 5);
    found.push(frame.toString('utf8', 5));
  }
  return found;
};

describe('hand-made frames of a process', () => {
  it("equal the library's JSON of the message that it parses from them", async () => {
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

  const endOf = (part: Partial<ProcessFact>, gone?: ConnectError): Promise<readonly string[]> =>
    framesOf([{ kind: 'end', fact: { ...FACT, ...part }, next: 'end' }], FACT, gone);

  it("end with the sandbox's end instead of an exit code if the sandbox ended the process", async () => {
    const gone = sandboxEnded('oom-killed');
    for (const part of [{ exitCode: 137, signal: 'KILL' }, { exitCode: 143 }])
      expect(await rejection(endOf(part, gone))).to.equal(gone);
    expect(await endOf({ exitCode: 3 }, gone)).to.have.lengthOf(1);
    expect(gone).to.include({ code: Code.Unavailable });
    expect(gone.message).to.contain('out of memory');
  });

  it('report lack of memory', async () => {
    const [end = ''] = await endOf({ exitCode: 137, signal: 'KILL', outOfMemory: true });
    expect(JSON.parse(end)).to.have.nested.property(
      'event.end.error',
      'signal: killed (the sandbox ran out of memory)',
    );
  });
});
