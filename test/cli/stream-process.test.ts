import { expect } from 'chai';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import type { Input } from '../../src/cli/client/operation-request.ts';
import type { ProcessEnvelope } from '../../src/cli/client/wire.ts';
import { streamProcess, type Streaming } from '../../src/cli/commands/stream-process.ts';
import { CliFailure } from '../../src/cli/common/failure.ts';
import { catchInterrupts, Interrupted } from '../../src/cli/common/interrupts.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('a process followed by the command line', () => {
  it('receives an interrupt that came before its start was reported', async () => {
    const interrupts = new AbortController();
    const signals: string[] = [];
    let tell = (): void => {};
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    const process = { processId: 'p', exitCode: 130 } as ProcessEnvelope['process'];
    const streaming = {
      api: {
        call: async (id: string, { params, body }: Input<'signalProcess'>) => {
          signals.push(`${id} ${params.processId} ${body.signal}`);
          tell();
        },
      },
      context: {},
      sandboxId: 's',
      input: false,
      interrupts: interrupts.signal,
      events: async function* events(leaving: AbortSignal) {
        interrupts.abort(new Interrupted('SIGINT'));
        leaving.throwIfAborted();
        yield { type: 'start', data: { process } } as const;
        await told;
        yield { type: 'end', data: { process } } as const;
      },
    };

    expect(await streamProcess(streaming as unknown as Streaming)).to.equal(130);
    expect(signals).to.deep.equal(['signalProcess p INT']);
  });

  it('continues after its reader has left if it was already running', async () => {
    const stdout = new PassThrough();
    const signals: string[] = [];
    const process = { processId: 'p' } as ProcessEnvelope['process'];
    const { signal: interrupts, dispose } = catchInterrupts(() => undefined, stdout);
    const streaming = {
      api: {
        call: async (id: string) => void signals.push(id),
      },
      context: { stdout },
      sandboxId: 's',
      processId: 'p',
      input: false,
      interrupts,
      events: async function* events(leaving: AbortSignal) {
        yield { type: 'start', data: { process } } as const;
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

  it('is named, with the command to attach, if its output stops early', async () => {
    const process = { processId: 'p' } as ProcessEnvelope['process'];
    const streaming = {
      context: {},
      sandboxId: 's',
      input: false,
      interrupts: new AbortController().signal,
      events: async function* events() {
        yield { type: 'start', data: { process } } as const;
      },
    };

    const failure = await rejection(streamProcess(streaming as unknown as Streaming));
    expect(failure)
      .to.be.instanceOf(CliFailure)
      .and.have.deep.property('hints', ['if the process is still running: sandpool attach s p']);
  });
});
