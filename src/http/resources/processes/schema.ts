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
    sandboxId: z
      .string()
      .refine(isInstanceId)
      .describe("A sandbox of the caller's, by the id that its claim answered."),
    processId: z
      .string()
      .refine((id) => PROCESS_ID.test(id))
      .describe('A process of the sandbox, by the id that its start answered.'),
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
  tty: maybe(z.boolean()).describe('Run it on a terminal. It prints to `stdout` alone then.'),
  cols: maybe(size(1_000)).describe('Columns of the terminal; 80 where it is left out.'),
  rows: maybe(size(1_000)).describe('Rows of the terminal; 24 where it is left out.'),
  stdin: maybe(z.boolean()).describe(
    'Keep its input open. Without it, it reads the end of file at once. A terminal’s is ' +
      'always open.',
  ),
  timeoutSeconds: maybe(z.int().min(1).max(MOST_SECONDS)).describe(
    'Kill its process group after so long; `exitCode` is 124 then. Left out: never.',
  ),
  tag: maybe(text(128)).describe('A word of the caller’s own, which is shown with it.'),
  container: maybe(name).describe("The container's name; left out, the first one's."),
});

export const OutputQuery = z.object({
  from: maybe(text(64)).describe(
    'Go on behind the event of this id; `latest`: with what comes from now on. Left out: from ' +
      'the beginning. `Last-Event-ID` wins over it.',
  ),
  pace: maybe(flag).describe(
    'Have the process wait for this reader, by back-pressure, in place of dropping what it does ' +
      'not read in time.',
  ),
  encoding: maybe(z.enum(['base64'])).describe(
    '`base64`: all that was printed comes as base64, which costs both sides far less. Left out: ' +
      'as text where it can.',
  ),
});

export const SignalBody = z.object({
  signal: z
    .enum(PROCESS_SIGNALS)
    .describe('Sent to its process group, or to the foreground of its terminal.'),
});

export const SizeBody = z.object({
  cols: size(1_000).describe('Columns of its terminal.'),
  rows: size(1_000).describe('Rows of its terminal.'),
});

export const StdinBody = z.object({
  data: maybe(
    z
      .string()
      .refine((data) => data.length <= 2 * INPUT_BYTES, `must hold at most ${INPUT_BYTES} bytes`)
      .meta({ maxLength: 2 * INPUT_BYTES }),
  ).describe('At most 64 KiB, as text or as `encoding` says.'),
  encoding: maybe(z.enum(['utf8', 'base64'])).describe('Of `data`; `utf8` where it is left out.'),
  close: maybe(z.boolean()).describe('Nothing comes behind it: the process reads the end.'),
});

export const Process = z
  .object({
    processId: z.string(),
    pid: z.int().describe('Its number within the sandbox.'),
    command: z.array(z.string()).describe('The program and its arguments.'),
    status: z.enum(['Running', 'Exited']),
    exitCode: z
      .int()
      .optional()
      .describe(
        'Of one that ended: its own, 128 + n after signal n, 127 not found, 126 not executable, ' +
          '124 timed out.',
      ),
    signal: z
      .string()
      .optional()
      .describe('What its `exitCode` says that ended it, such as `KILL`.'),
    oomKilled: z
      .literal(true)
      .optional()
      .describe(
        'It was killed, and memory ran out in its sandbox while it ran. Not known on Kubernetes.',
      ),
    startedAt: timestamp,
    endedAt: timestamp.optional(),
    tag: z.string().optional(),
    tty: z.boolean().describe('It has a terminal.'),
    stdin: z.boolean().describe('It takes input.'),
  })
  .meta({ id: 'Process' });
export const ProcessEnvelope = z.object({ process: Process }).meta({ id: 'ProcessEnvelope' });
export const ProcessList = z
  .object({ items: z.array(Process), total: z.int() })
  .meta({ id: 'ProcessList' });
export const ProcessDeletion = z
  .object({ processId: z.string(), status: z.literal('deleted') })
  .meta({ id: 'ProcessDeletion' });

/** Data of an event, by event name. */
export const ProcessEvent = z
  .union([
    ProcessEnvelope.describe('`start` and `end`.'),
    z
      .object({
        data: z.string(),
        encoding: z
          .literal('base64')
          .optional()
          .describe('Given where `data` is base64, and no text.'),
      })
      .describe('`stdout` and `stderr`.'),
    z
      .object({ bytes: z.int().optional() })
      .describe('`dropped`: how much of it is not kept any more, where that is known.'),
    z
      .object({ error: z.string(), errorCode: z.string() })
      .describe('`error`: the process is removed or lost, and nothing more can be read.'),
  ])
  .meta({ id: 'ProcessEvent' });

export type ProcessWire = z.infer<typeof Process>;
