import { z } from 'zod';
import { isInstanceId } from '../../../model/identifiers.ts';
import { INPUT_BYTES, PROCESS_SIGNALS } from '../../../model/process.ts';
import { processNotFound, sandboxNotFound } from '../../../model/refusals.ts';
import type { PathParams } from '../../corridor/route.ts';
import { flag, maybe, name, text, timestamp } from '../../corridor/common-schema.ts';
import { ExecBody } from '../sandboxes/schema.ts';

const PROCESS_ID = /^[A-Za-z0-9-]{1,64}$/;

export const ProcessPath: PathParams<{ sandboxId: string; processId: string }> = {
  schema: z.object({
    sandboxId: z.string().refine(isInstanceId).describe("Id of one of the caller's sandboxes."),
    processId: z
      .string()
      .refine((id) => PROCESS_ID.test(id))
      .describe('Id of a process of the sandbox.'),
  }),
  otherwise: ({ sandboxId = '' }) =>
    isInstanceId(sandboxId) ? processNotFound() : sandboxNotFound(),
  names: { sandboxId: 'sandbox' },
};

const size = (most: number) => z.int().min(1).max(most);

/** Ten years. */
const MOST_SECONDS = 315_360_000;

export const ProcessBody = z.object({
  command: ExecBody.shape.command,
  cwd: ExecBody.shape.cwd,
  env: ExecBody.shape.env,
  tty: maybe(z.boolean()).describe(
    'Run the process on a terminal. All its output is then on `stdout`.',
  ),
  cols: maybe(size(1_000)).describe('Columns of the terminal. Default: 80.'),
  rows: maybe(size(1_000)).describe('Rows of the terminal. Default: 24.'),
  stdin: maybe(z.boolean()).describe(
    "Keep the process's input open. Otherwise it reads end of file at once. The input of a " +
      'terminal is always open.',
  ),
  timeoutSeconds: maybe(z.int().min(1).max(MOST_SECONDS)).describe(
    'Kill the process group after this many seconds; `exitCode` is then 124. If absent, ' +
      'there is no limit.',
  ),
  tag: maybe(text(128)).describe('A label of the caller’s, shown with the process.'),
  container: maybe(name).describe('Name of the container. Default: the first container.'),
});

export const OutputQuery = z.object({
  from: maybe(text(64)).describe(
    'Continue after the event with this id. `latest`: only new output. If absent, from the ' +
      'beginning. `Last-Event-ID` takes precedence.',
  ),
  pace: maybe(flag).describe(
    'Block the process while this reader is slow, instead of dropping output that it does ' +
      'not read in time.',
  ),
  encoding: maybe(z.enum(['base64'])).describe(
    '`base64`: all output is sent as base64, which takes far less work on both sides. If ' +
      'absent, output is sent as text where possible.',
  ),
});

export const SignalBody = z.object({
  signal: z
    .enum(PROCESS_SIGNALS)
    .describe('Sent to the process group, or to the foreground process of the terminal.'),
});

export const SizeBody = z.object({
  cols: size(1_000).describe('Columns of the terminal.'),
  rows: size(1_000).describe('Rows of the terminal.'),
});

export const StdinBody = z.object({
  data: maybe(
    z
      .string()
      .refine((data) => data.length <= 2 * INPUT_BYTES, `must have at most ${INPUT_BYTES} bytes`)
      .meta({ maxLength: 2 * INPUT_BYTES }),
  ).describe('At most 64 KiB, in the form that `encoding` names.'),
  encoding: maybe(z.enum(['utf8', 'base64'])).describe('Encoding of `data`. Default: `utf8`.'),
  close: maybe(z.boolean()).describe(
    'Close the input after `data`, so that the process reads end of file.',
  ),
});

export const Process = z
  .object({
    processId: z.string(),
    pid: z.int().describe('Process id within the sandbox.'),
    command: z.array(z.string()).describe('The program and its arguments.'),
    status: z.enum(['Running', 'Exited']),
    exitCode: z
      .int()
      .optional()
      .describe(
        'Exit code of the process: 128 + n after signal n, 127 not found, 126 not ' +
          'executable, 124 timed out. Absent while it runs.',
      ),
    signal: z
      .string()
      .optional()
      .describe('Signal that ended the process, according to `exitCode`, such as `KILL`.'),
    oomKilled: z
      .literal(true)
      .optional()
      .describe(
        'The process was killed, and its sandbox ran out of memory while it ran. Never set ' +
          'on Kubernetes.',
      ),
    startedAt: timestamp,
    endedAt: timestamp.optional(),
    tag: z.string().optional(),
    tty: z.boolean().describe('Whether the process has a terminal.'),
    stdin: z.boolean().describe('Whether the process takes input.'),
  })
  .meta({ id: 'Process' });
export const ProcessEnvelope = z.object({ process: Process }).meta({ id: 'ProcessEnvelope' });
export const ProcessList = z
  .object({ items: z.array(Process), total: z.int() })
  .meta({ id: 'ProcessList' });
export const ProcessDeletion = z
  .object({ processId: z.string(), status: z.literal('deleted') })
  .meta({ id: 'ProcessDeletion' });

export const ProcessEvent = z
  .union([
    ProcessEnvelope.describe('Data of `start` and `end`.'),
    z
      .object({
        data: z.string(),
        encoding: z
          .literal('base64')
          .optional()
          .describe('Set if `data` is base64 instead of text.'),
      })
      .describe('Data of `stdout` and `stderr`.'),
    z
      .object({ bytes: z.int().optional() })
      .describe('Data of `dropped`: number of bytes that are no longer stored, if known.'),
    z
      .object({ error: z.string(), errorCode: z.string() })
      .describe('Data of `error`: the process was deleted or lost, and nothing more can be read.'),
  ])
  .meta({ id: 'ProcessEvent' });

export type ProcessWire = z.infer<typeof Process>;
