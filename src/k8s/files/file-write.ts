import { randomBytes } from 'node:crypto';
import { Writable, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FileRefused, type WriteRequest, type WrittenFile } from '../../contracts/files.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { scriptLines } from '../streams/pod-script.ts';
import type { ScriptChannel } from '../streams/script-channel.ts';
import { ChannelReader } from './channel-reader.ts';
import { refusalIn } from './file-refusals.ts';
import { textInput, type PodPlace } from './file-scripts.ts';
import { readStat, versionWord } from './file-stats.ts';

/** Until what was written in vain has been removed. */
const REMOVED_WITHIN_MS = 5_000;
const ANSWER_BYTES = 8 << 10;
const NO_METADATA =
  'files have no metadata here; write the file without it, and keep the metadata in another file';

interface Writing extends PodPlace {
  readonly content: Readable;
  readonly request: WriteRequest;
  readonly signal: AbortSignal;
  /** Milliseconds that the script has to remove what it wrote in vain. */
  readonly removedWithinMs?: number;
}

/**
 * Writes a file. A word that both sides alone know ends the content: content without it was cut
 * off, and is thrown away, whoever cut it.
 */
export const writeFile = async (
  open: (input: Buffer) => Promise<ScriptChannel>,
  { target, path, content, request, signal, removedWithinMs = REMOVED_WITHIN_MS }: Writing,
): Promise<WrittenFile> => {
  if (request.metadata) throw new FileRefused('no-metadata', NO_METADATA);
  const end = randomBytes(16).toString('hex');
  const input = [textInput(path), optionLines(request, end, `.sandpool-${target.uid}-files`)];
  const channel = await open(Buffer.concat(input));
  const reader = new ChannelReader(channel);
  const abort = (): void => {
    content.destroy(signal.reason instanceof Error ? signal.reason : new Error('called off'));
    // A script that hangs hears of no end. What is closed by then stays so.
    setTimeout(() => channel.close({ kill: true }), removedWithinMs).unref();
  };
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  try {
    const sending = { channel, reader, end: Buffer.from(end), stop: () => content.destroy() };
    return writtenIn(await answerTo(content, sending));
  } finally {
    signal.removeEventListener('abort', abort);
    channel.close();
  }
};

interface Sending {
  readonly channel: ScriptChannel;
  readonly reader: ChannelReader;
  /** Says behind the content that it is whole. */
  readonly end: Buffer;
  /** Has whoever gives the content give no more. */
  readonly stop: () => void;
}

/**
 * Sends content to a script that says `ready` first, and returns what the script says in the end,
 * which it may do before it was sent all. Where the content fails the script learns of the end of
 * its input, and is waited for a little, to remove what it made.
 */
export const answerTo = async (
  content: Readable,
  { channel, reader, end, stop }: Sending,
): Promise<string> => {
  const ready = await reader.line();
  if (ready !== 'ready') throw refusalIn(ready) ?? unsaid();
  const answer = answerIn(reader);
  let isAnswered = false;
  const answered = answer
    .catch(() => undefined)
    .then(() => {
      isAnswered = true;
      // Whoever gives the content may have nothing to give for long.
      if (!content.readableEnded) stop();
    });
  try {
    await pipeline(content, sinkInto(channel, answered));
    if (!isAnswered) await channel.write(end);
  } catch (error) {
    if (!isAnswered) {
      await endInVain(channel, answered);
      throw error;
    }
  }
  channel.endInput();
  return await answer;
};

/**
 * Reads what a script says, line by line. A refusal is the last: with input that nobody reads any
 * more, some container runtimes never say that the script has ended.
 */
const answerIn = async (reader: ChannelReader): Promise<string> => {
  let answer = '';
  for (;;) {
    const line = (await reader.until(Buffer.from('\n'), ANSWER_BYTES)).toString('latin1');
    if (line === '' || answer.length > ANSWER_BYTES) return answer;
    answer += `${line}\n`;
    if (line.startsWith('! ')) return answer;
  }
};

const sinkInto = (channel: ScriptChannel, answered: Promise<void>): Writable => {
  const handOver = async (piece: Buffer, done: () => void): Promise<void> => {
    await Promise.race([channel.write(piece), answered]);
    done();
  };
  return new Writable({
    highWaterMark: 64 << 10,
    write: (piece: Buffer, _encoding, done) => {
      void handOver(piece, done);
    },
  });
};

const endInVain = async (channel: ScriptChannel, answered: Promise<void>): Promise<void> => {
  channel.endInput();
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    answered,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, REMOVED_WITHIN_MS);
    }),
  ]);
  clearTimeout(timer);
};

const optionLines = (
  { overwrite, parents, mode, ifMatch }: WriteRequest,
  end: string,
  lock: string,
): Buffer =>
  scriptLines(
    randomBytes(8).toString('hex'),
    overwrite ? 'yes' : 'no',
    parents ? 'yes' : 'no',
    mode === undefined ? '-' : mode.toString(8),
    ifMatch === undefined ? '-' : ifMatch === 'any' ? 'any' : ifMatch.map(versionWord).join(' '),
    end,
    lock,
  );

const writtenIn = (answer: string): WrittenFile => {
  const refusal = refusalIn(answer);
  if (refusal) throw refusal;
  const [word, line = ''] = answer.split('\n');
  const read = readStat(line);
  if (!read) throw unsaid();
  return { stat: read.stat, created: word === 'made' };
};

export const unsaid = (): OutcomeUnknown =>
  new OutcomeUnknown('the sandbox does not say whether it was written');
