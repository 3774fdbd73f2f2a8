import { expect } from 'chai';
import { ProcessGone, type OutputRequest } from '../../src/contracts/processes.ts';
import { Deferred } from '../../src/lib/deferred.ts';
import type { ProcessFact, ProcessOutput } from '../../src/model/process.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { followProcess, ReaderPlaces } from '../../src/services/processes/follow-process.ts';
import type { ProcessDeps } from '../../src/services/processes/process-deps.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import type { Caller } from '../../src/model/tenant.ts';

const CALLER = { namespace: 'red', user: 'u' } as unknown as Caller;
const FACT = { processId: 'p', status: 'Running' } as unknown as ProcessFact;
const PIECE: ProcessOutput = {
  kind: 'bytes',
  stream: 'stdout',
  bytes: Buffer.from('x'),
  next: '1',
};

describe('a reading of new output', () => {
  const aReading = (output: (request: OutputRequest) => AsyncIterable<ProcessOutput>) => {
    const readers = { count: 0 };
    const clock = new TestClock();
    const sandboxes = {
      require: async () => undefined,
      busy: () => {
        readers.count += 1;
        return () => (readers.count -= 1);
      },
    };
    const processes = {
      find: async () => FACT,
      output: (_id: string, _process: string, request: OutputRequest) => output(request),
    };
    const deps = { sandboxes, clock, driver: { processes } } as unknown as ProcessDeps;
    const follow = followProcess(deps, new ReaderPlaces(deps.sandboxes));
    const request = { processId: 'p', from: 'latest', pace: true };
    return { readers, clock, follow: () => follow(CALLER, 's', request) };
  };
  const settledIn = async (work: Promise<unknown>): Promise<boolean> => {
    let isSettled = false;
    void work.then(() => (isSettled = true));
    for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    return isSettled;
  };

  it('begins before the caller may send input', async () => {
    const [positioned, more] = [new Deferred<void>(), new Deferred<void>()];
    const under = aReading(async function* (request) {
      await positioned.promise;
      request.positioned?.();
      await more.promise;
      yield PIECE;
    });
    const following = under.follow();

    expect(await settledIn(following)).to.equal(false);
    positioned.resolve();
    const { output } = await following;
    more.resolve();
    const seen: ProcessOutput[] = [];
    for await (const piece of output(new AbortController().signal)) seen.push(piece);
    expect(seen).to.deep.equal([PIECE]);
  });

  it('is refused, and keeps no place, if the process is gone', async () => {
    // oxlint-disable-next-line eslint/require-yield -- it fails at once
    const under = aReading(async function* () {
      throw new ProcessGone('gone');
    });

    expect(await rejection(under.follow())).to.be.instanceOf(Refusal);
    expect(under.readers.count).to.equal(0);
  });

  it('ends when it is closed, even unread', async () => {
    const over = new Deferred<void>();
    // oxlint-disable-next-line eslint/require-yield -- nothing is printed
    const under = aReading(async function* (request) {
      request.positioned?.();
      const { signal } = request as OutputRequest & { readonly signal: AbortSignal };
      signal.addEventListener('abort', () => over.resolve());
      await over.promise;
    });
    const { close } = await under.follow();
    close();

    await over.promise;
    expect(under.readers.count).to.equal(0);
  });

  it('is handed over after 30 s if its position is not reported', async () => {
    const under = aReading(async function* () {
      await new Promise(() => {});
      yield PIECE;
    });
    const following = under.follow();
    expect(await settledIn(following)).to.equal(false);
    under.clock.advance(30_000);

    const { close } = await following;
    close();
    expect(under.readers.count).to.equal(0);
  });
});
