import type { Writable } from 'node:stream';
import type { StreamEvent } from '../client/event-stream.ts';
import type { Body } from '../client/operation-request.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { ProcessEnvelope } from '../client/wire.ts';
import { PROCESS_SIGNALS, type ProcessSignal } from '../../model/process.ts';
import { type CliContext, say } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { OUT_OF_MEMORY } from '../terminal/interactive.ts';
import { Interrupted } from '../common/interrupts.ts';

/** Bounds one call. */
const INPUT_BYTES = 64 << 10;
/** Until a process that ignores a forwarded signal is killed. */
const STUBBORN_MS = 3_000;

export interface Streaming {
  readonly api: SandpoolClient;
  readonly context: CliContext;
  readonly sandboxId: string;
  readonly events: (signal: AbortSignal) => Promise<AsyncIterable<StreamEvent<'followProcess'>>>;
  /** Set if this command did not start the process. */
  readonly processId?: string;
  readonly input: boolean;
  /** The process gets the abort's signal. */
  readonly interrupts: AbortSignal;
}

/**
 * Resolves with the exit code. Kills a process that ignores a signal for 3 s. If the reader of the
 * output leaves, a process that this command started ends by SIGPIPE; others run on.
 */
export const streamProcess = async (streaming: Streaming): Promise<number> => {
  const { context, sandboxId, interrupts } = streaming;
  const leaving = new AbortController();
  const life = { processId: streaming.processId, input: streaming.input };
  const pass = passingOn(streaming, life, leaving);
  if (interrupts.aborted) pass.interrupted();
  else interrupts.addEventListener('abort', pass.interrupted, { once: true });
  try {
    for await (const event of await streaming.events(leaving.signal)) {
      if (event.type === 'start') {
        life.processId = event.data.process.processId;
        if (interrupts.aborted) pass.interrupted();
      }
      if (life.processId !== undefined && life.input) {
        life.input = false;
        void handOn(streaming, life.processId, leaving.signal);
      }
      if (event.type === 'end') return await exitOf(event.data, streaming);
      await printEvent(event, context);
    }
    throw new CliFailure(
      'the output stopped before the process ended; the daemon may be stopping',
      life.processId === undefined
        ? []
        : [`if the process is still running: sandpool attach ${sandboxId} ${life.processId}`],
    );
  } catch (error) {
    if (!interrupts.aborted) throw error;
    if (!isLeftAlone(streaming)) await pass.kill();
    throw interrupts.reason;
  } finally {
    interrupts.removeEventListener('abort', pass.interrupted);
    pass.dispose();
    leaving.abort();
  }
};

/** Reports dropped output. */
export const printEvent = async (
  { type, data }: StreamEvent<'followProcess'>,
  context: CliContext,
): Promise<void> => {
  if (type === 'stdout' || type === 'stderr')
    await put(context[type], Buffer.from(data.data, data.encoding ?? 'utf8'));
  else if (type === 'dropped')
    await say(context, `${data.bytes ?? 'some'} bytes of its output are no longer stored`);
  else if (type === 'error') throw new CliFailure(data.error, []);
};

const exitOf = async (
  { process: { oomKilled, exitCode } }: ProcessEnvelope,
  { context, interrupts }: Streaming,
): Promise<number> => {
  if (oomKilled) await say(context, OUT_OF_MEMORY);
  return readerLeft(interrupts)?.exitCode ?? exitCode ?? 0;
};

const readerLeft = ({ reason }: AbortSignal): Interrupted | undefined =>
  reason instanceof Interrupted && reason.signal === 'SIGPIPE' ? reason : undefined;

const isLeftAlone = ({ interrupts, processId }: Streaming): boolean =>
  processId !== undefined && readerLeft(interrupts) !== undefined;

const signalFor = ({ reason }: AbortSignal): ProcessSignal =>
  PROCESS_SIGNALS.find((name) => reason instanceof Interrupted && reason.signal === `SIG${name}`) ??
  'TERM';

const passingOn = (
  streaming: Streaming,
  life: { readonly processId: string | undefined },
  leaving: AbortController,
) => {
  const { api, sandboxId, interrupts } = streaming;
  const signal = async (processId: string, name: ProcessSignal): Promise<void> =>
    void (await api.call('signalProcess', {
      params: { sandboxId, processId },
      body: { signal: name },
    }));
  let timer: NodeJS.Timeout | undefined;
  const interrupted = (): void => {
    if (isLeftAlone(streaming)) return leaving.abort(interrupts.reason);
    timer ??= setTimeout(() => leaving.abort(interrupts.reason), STUBBORN_MS);
    if (life.processId === undefined) return; // the signal is sent once the id is known
    signal(life.processId, signalFor(interrupts)).catch(() => leaving.abort(interrupts.reason));
  };
  const kill = async (): Promise<void> => {
    if (life.processId !== undefined) await signal(life.processId, 'KILL').catch(() => undefined);
  };
  return { interrupted, kill, dispose: () => clearTimeout(timer) };
};

/** Never rejects: the process runs on even if it takes no more input. */
const handOn = async (
  { api, context: { stdin }, sandboxId }: Streaming,
  processId: string,
  signal: AbortSignal,
): Promise<void> => {
  const stop = (): void => {
    stdin.destroy();
  };
  const write = (body: Body<'writeToProcess'>) =>
    api.call('writeToProcess', { params: { sandboxId, processId }, body });
  signal.addEventListener('abort', stop, { once: true });
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer>)
      for (let at = 0; at < chunk.length; at += INPUT_BYTES)
        await write({
          data: chunk.subarray(at, at + INPUT_BYTES).toString('base64'),
          encoding: 'base64',
        });
    await write({ data: '', close: true });
  } catch {
    stdin.destroy();
  } finally {
    signal.removeEventListener('abort', stop);
  }
};

/** Ignores a reader that has left. */
const put = async (stream: Writable, bytes: Buffer): Promise<void> => {
  await new Promise<void>((resolve) => {
    stream.write(bytes, () => resolve());
  });
};
