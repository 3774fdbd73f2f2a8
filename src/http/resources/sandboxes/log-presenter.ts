import type { LogBatch, LogLine } from '../../../contracts/sandbox-driver.ts';
import { TextBytes } from '../../../lib/json-text.ts';
import { podNameOf } from '../../../model/identifiers.ts';
import type { SandboxLogs } from '../../../actors/sandbox/commands/sandbox-operations.ts';
import type { ServerEvent } from '../../reply/event-streams.ts';
import { LongAnswer, type TextAsBytes } from '../../reply/long-answer.ts';
import type { SandboxLogsWire } from './log-schema.ts';

export interface LogsStyle {
  readonly timestamps: boolean;
}

/** `text` comes from presentLogText. Invalid UTF-8 becomes U+FFFD. */
export const presentLogs = (view: SandboxLogs, text: Buffer): LongAnswer =>
  new LongAnswer({
    sandboxId: view.sandboxId,
    podName: podNameOf(view.sandboxId),
    container: view.container,
    logs: new TextBytes(text),
    truncated: view.truncated,
  } satisfies TextAsBytes<SandboxLogsWire>);

export const presentLogText = ({ lines }: SandboxLogs, { timestamps }: LogsStyle): Buffer =>
  Buffer.concat(
    lines.flatMap(({ time, text, partial }) => [
      ...(timestamps ? [Buffer.from(`${time} `)] : []),
      text,
      ...(partial ? [] : [LINE_END]),
    ]),
  );

const LINE_END = Buffer.from('\n');

/** `reset` marks skipped lines, and `end` follows the last line. */
export async function* presentLogEvents(
  sandboxId: string,
  batches: AsyncIterable<LogBatch>,
  { timestamps, signal }: LogsStyle & { readonly signal: AbortSignal },
): AsyncGenerator<ServerEvent, void, undefined> {
  // A partial line may end inside a character.
  const decoder = new TextDecoder();
  for await (const { lines, skipped } of batches) {
    if (skipped) yield { event: 'reset', data: { sandboxId } };
    for (const line of lines) yield presentLine(line, decoder, timestamps);
  }
  if (!signal.aborted) yield { event: 'end', data: { sandboxId } };
}

const presentLine = (
  { time, text, partial, next }: LogLine,
  decoder: InstanceType<typeof TextDecoder>,
  timestamps: boolean,
): ServerEvent => ({
  id: next,
  data: {
    line: decoder.decode(text, { stream: partial }),
    partial: partial || undefined,
    timestamp: timestamps ? time : undefined,
  },
});
