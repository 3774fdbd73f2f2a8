import { expect } from 'chai';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { SandboxProcess } from '../../src/cli/client/process-calls.ts';
import { streamProcess, type Streaming } from '../../src/cli/commands/stream-process.ts';
import { CliFailure } from '../../src/cli/common/failure.ts';
import { catchInterrupts, Interrupted } from '../../src/cli/common/interrupts.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('a process that the command line follows', () => {
  it('is told of an interrupt that came before it was known', async () => {
    const interrupts = new AbortController();
    const signals: string[] = [];
    let tell = (): void => {};
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const process = { processId: 'p', exitCode: 130 } as SandboxProcess;
    const streaming = {
      api: {
        processes: {
          signal: async (_sandbox: string, processId: string, name: string) => {
            signals.push(`${processId} ${name}`);
            tell();
          },
        },
      },
      context: {},
      sandboxId: 's',
      input: false,
      interrupts: interrupts.signal,
      events: async function* events(leaving: AbortSignal) {
        interrupts.abort(new Interrupted('SIGINT'));
        leaving.throwIfAborted();
        yield { type: 'start', process } as const;
        await told;
        yield { type: 'end', process } as const;
      },
    };

    expect(await streamProcess(streaming as unknown as Streaming)).to.equal(130);
    expect(signals).to.deep.equal(['p INT']);
  });

  it('goes on, if it ran before, when the reader of its output has left', async () => {
    const stdout = new PassThrough();
    const signals: string[] = [];
    const process = { processId: 'p' } as SandboxProcess;
    const { signal: interrupts, dispose } = catchInterrupts(() => undefined, stdout);
    const streaming = {
      api: {
        processes: { signal: async (...of: readonly string[]) => void signals.push(of.join(' ')) },
      },
      context: { stdout },
      sandboxId: 's',
      processId: 'p',
      input: false,
      interrupts,
      events: async function* events(leaving: AbortSignal) {
        yield { type: 'start', process } as const;
        stdout.destroy(new Error('EPIPE'));
        await once(leaving, 'abort');
        leaving.throwIfAborted();
      },
    };

    const failure = await rejection(streamProcess(streaming as unknown as Streaming));
    dispose();
    expect(failure).to.include({ name: 'Interrupted', exitCode: 141 });
    expect(signals).to.deep.equal([]);
  });

  it('is named, with what shows the rest, if its output stops before its end', async () => {
    const process = { processId: 'p' } as SandboxProcess;
    const streaming = {
      context: {},
      sandboxId: 's',
      input: false,
      interrupts: new AbortController().signal,
      events: async function* events() {
        yield { type: 'start', process } as const;
      },
    };

    const failure = await rejection(streamProcess(streaming as unknown as Streaming));
    expect(failure)
      .to.be.instanceOf(CliFailure)
      .and.have.deep.property('hints', ['if the process still runs: sandpool attach s p']);
  });
});
