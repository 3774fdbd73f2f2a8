import type { Body } from '../client/operation-request.ts';
import { ApiError } from '../client/api-error.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import type { ExecResult } from '../client/wire.ts';
import { type CliContext, print, say } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { interact, OUT_OF_MEMORY, terminalSize } from '../terminal/interactive.ts';
import { typedCommand } from '../common/typed-command.ts';
import { streamProcess } from './stream-process.ts';

export interface CommandOptions {
  readonly tty?: boolean;
  readonly interactive?: boolean;
  /** In seconds. */
  readonly timeout?: number;
}

export const MAX_TIMEOUT_SECONDS = 300;
const MAX_STDIN_BYTES = 512 * 1024;
const TIMED_OUT = 124;

export interface CommandRun {
  readonly api: SandpoolClient;
  readonly context: CliContext;
  readonly sandboxId: string;
  readonly argv: readonly string[];
  readonly options: CommandOptions;
  readonly signal: AbortSignal;
}

/** Without support for processes, the output comes at the end. */
export const runCommand = async (run: CommandRun): Promise<number> => {
  if (run.options.tty) return await runInTerminal(run);
  try {
    return await runAsProcess(run);
  } catch (error) {
    if (error instanceof ApiError && error.errorCode === 'FEATURE_DISABLED')
      return await runAndPrint(run);
    throw error;
  }
};

export const processRequest = ({
  argv,
  options,
}: Omit<CommandRun, 'signal'>): Body<'startProcess'> => ({
  command: argv,
  timeoutSeconds: options.timeout,
});

/** Drops a leading `--`. */
export const commandWords = (words: readonly string[]): readonly string[] => {
  const argv = words[0] === '--' ? words.slice(1) : words;
  if (argv.length === 0)
    throw new CliFailure('no command was given', ['give a command after --, such as: -- uname -a']);
  return argv;
};

const runInTerminal = async ({
  api,
  context,
  sandboxId,
  argv,
  signal,
}: CommandRun): Promise<number> => {
  const typed = typedCommand(argv);
  const terminal = await api.terminal(sandboxId, terminalSize(context));
  return await interact(terminal, context, { signal, typed });
};

const runAsProcess = async (run: CommandRun): Promise<number> => {
  const { api, context, sandboxId, options, signal } = run;
  const input = options.interactive ?? false;
  const body = { ...processRequest(run), stdin: input };
  const exitCode = await streamProcess({
    api,
    context,
    sandboxId,
    input,
    interrupts: signal,
    events: (leaving) =>
      api.stream('startProcess', {
        params: { sandboxId },
        query: { encoding: 'base64', pace: true },
        body,
        signal: leaving,
      }),
  });
  if (options.timeout !== undefined && exitCode === TIMED_OUT)
    await say(context, `the command was ended after ${options.timeout} s`);
  return exitCode;
};

const runAndPrint = async ({
  api,
  context,
  sandboxId,
  argv,
  options,
  signal,
}: CommandRun): Promise<number> => {
  const timeoutSeconds = options.timeout ?? MAX_TIMEOUT_SECONDS;
  const stdin = options.interactive ? await readInput(context, signal) : undefined;
  const result = await api.call('execInSandbox', {
    params: { sandboxId },
    body: { command: argv, timeoutSeconds, stdin },
    signal,
  });
  await print(context.stdout, result.stdout);
  await print(context.stderr, result.stderr);
  await remark(result, timeoutSeconds, context);
  return result.exitCode;
};

const remark = async (
  result: ExecResult,
  timeoutSeconds: number,
  context: CliContext,
): Promise<void> => {
  if (result.truncated) await say(context, 'the output was cut off at 1 MiB');
  if (result.oomKilled) await say(context, OUT_OF_MEMORY);
  if (result.timedOut)
    await say(
      context,
      `the command was ended after ${timeoutSeconds} s`,
      'with -t it may run longer',
    );
};

const readInput = async ({ stdin }: CliContext, signal: AbortSignal): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  const onAbort = (): void => {
    stdin.destroy();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    for await (const chunk of stdin as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_STDIN_BYTES)
        throw new CliFailure('the input is longer than 512 KiB', ['with -t there is no limit']);
      chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks).toString('utf8');
};
