import { Readable } from 'node:stream';
import {
  FileRefused,
  type FileEvent,
  type FilePage,
  type FileStat,
  type FolderRequest,
  type ListRequest,
  type MoveRequest,
  type OpenedFile,
  type OpenRequest,
  type WatchRequest,
  type WriteRequest,
  type WrittenFile,
  type WrittenTree,
} from '../../contracts/files.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import type { PodTarget } from '../sandboxes/pods/pod-presence.ts';
import { askPodBytes } from '../streams/ask-pod.ts';
import type { PodLinks } from '../streams/pod-links.ts';
import { scriptLines } from '../streams/pod-script.ts';
import { NoShell, ScriptChannel } from '../streams/script-channel.ts';
import { packedTree } from './archives/read-tree.ts';
import { writeTree } from './archives/write-tree.ts';
import { ChannelReader } from './channel-reader.ts';
import { listFolder } from './file-list.ts';
import { refusalIn } from './file-refusals.ts';
import { fileScripts, textInput, type FileScripts, type PodPlace } from './file-scripts.ts';
import { readStat } from './file-stats.ts';
import { resolvedRange } from './file-range.ts';
import { watchFolder } from './file-watch.ts';
import { writeFile } from './file-write.ts';

/** Longest that a change of names takes; a large tree takes long to remove. */
const CHANGE_MS = 600_000;
const UNSAID = 'the sandbox does not say what is there';

/**
 * The files in the containers of a Pod, as `SandboxFiles` promises them, by scripts that a shell in
 * the container runs, and the programs there.
 */
export class PodFiles {
  readonly #links: PodLinks;

  constructor(links: PodLinks) {
    this.#links = links;
  }

  async stat({ target, path }: PodPlace, signal: AbortSignal): Promise<FileStat> {
    const answer = await this.#ask('stat', target, textInput(path), signal);
    const text = answer.toString('latin1');
    const stat = statIn(text);
    if (stat.kind !== 'link') return stat;
    const end = text.indexOf('\0');
    if (end < 0) throw new OutcomeUnknown(UNSAID);
    return { ...stat, target: answer.subarray(text.indexOf('\n') + 1, end) };
  }

  async open(
    { target, path }: PodPlace,
    { range }: OpenRequest,
    signal: AbortSignal,
  ): Promise<OpenedFile> {
    const channel = await this.#open('read', target, textInput(path), signal);
    const reader = new ChannelReader(channel);
    const leave = (): void => {
      channel.close({ kill: true });
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      const line = await reader.line();
      signal.throwIfAborted();
      const stat = statIn(line);
      const { start, end } = resolvedRange(stat.size, range);
      const whole = start === 0 && end === stat.size ? 'yes' : 'no';
      void channel.write(Buffer.from(`${start} ${end - start} ${whole}\n`));
      const content = streamOf(contentOf(reader, end - start), channel, signal);
      return { stat, start, end, content };
    } catch (error) {
      channel.close();
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  async write(
    place: PodPlace,
    content: Readable,
    { request, signal }: { readonly request: WriteRequest; readonly signal: AbortSignal },
  ): Promise<WrittenFile> {
    // It may fail, or be called off, while nobody reads it yet: whoever gave it is told by this.
    content.on('error', () => undefined);
    try {
      return await writeFile((input) => this.#open('write', place.target, input, signal), {
        ...place,
        content,
        request,
        signal,
      });
    } catch (error) {
      content.destroy();
      throw signal.aborted ? signal.reason : error;
    }
  }

  async remove(
    { target, path }: PodPlace,
    { recursive }: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const deed = `remove ${recursive ? 'yes' : 'no'}`;
    await this.#change(target, [scriptLines(deed), textInput(path)], signal);
  }

  list(place: PodPlace, request: ListRequest, signal: AbortSignal): Promise<FilePage> {
    return listFolder((script, input) => this.#open(script, place.target, input, signal), {
      ...place,
      request,
      signal,
    });
  }

  async move(
    { target, path }: PodPlace,
    request: MoveRequest,
    signal: AbortSignal,
  ): Promise<FileStat> {
    const deed = `move ${request.overwrite ? 'yes' : 'no'}`;
    const input = [scriptLines(deed), textInput(path), textInput(request.to)];
    return statIn(await this.#change(target, input, signal));
  }

  async mkdir(
    { target, path }: PodPlace,
    { mode = 0o755, parents }: FolderRequest,
    signal: AbortSignal,
  ): Promise<WrittenFile> {
    const deed = `mkdir ${mode.toString(8)} ${parents ? 'yes' : 'no'}`;
    const answer = await this.#change(target, [scriptLines(deed), textInput(path)], signal);
    const [made, stat = ''] = answer.split('\n');
    return { stat: statIn(stat), created: made === 'made' };
  }

  watch(
    place: PodPlace,
    request: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly FileEvent[]>> {
    return watchFolder((input) => this.#open('watch', place.target, input, signal), {
      ...place,
      request,
      signal,
    });
  }

  async readTree({ target, path }: PodPlace, signal: AbortSignal): Promise<Readable> {
    const channel = await this.#open('pack', target, textInput(path), signal);
    const leave = (): void => {
      channel.close({ kill: true });
    };
    signal.addEventListener('abort', leave, { once: true });
    try {
      const reader = new ChannelReader(channel);
      const line = await reader.line();
      signal.throwIfAborted();
      if (line !== 'folder') throw refusalIn(line) ?? new OutcomeUnknown(UNSAID);
      return streamOf(packedTree(channel, reader), channel, signal);
    } catch (error) {
      channel.close();
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  async writeTree(place: PodPlace, archive: Readable, signal: AbortSignal): Promise<WrittenTree> {
    archive.on('error', () => undefined);
    try {
      return await writeTree((input) => this.#open('unpack', place.target, input, signal), {
        ...place,
        archive,
        signal,
      });
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      archive.destroy();
    }
  }

  async #change(target: PodTarget, input: readonly Buffer[], signal: AbortSignal): Promise<string> {
    const answer = await this.#ask('change', target, Buffer.concat(input), signal);
    return answer.toString('latin1');
  }

  async #ask(
    script: keyof FileScripts,
    target: PodTarget,
    input: Buffer,
    signal: AbortSignal,
  ): Promise<Buffer> {
    const question = { script: fileScripts()[script], input, withinMs: CHANGE_MS, signal };
    const answer = await askPodBytes(this.#links, target, question).catch((error: unknown) => {
      throw asSupported(error);
    });
    const refusal = refusalIn(answer.toString('latin1'));
    if (refusal) throw refusal;
    if (answer.length === 0) throw new OutcomeUnknown('the sandbox does not say what it did');
    return answer;
  }

  async #open(
    script: keyof FileScripts,
    target: PodTarget,
    input: Buffer,
    signal: AbortSignal,
  ): Promise<ScriptChannel> {
    signal.throwIfAborted();
    try {
      return await ScriptChannel.open(this.#links, target, fileScripts()[script], input);
    } catch (error) {
      throw asSupported(error);
    }
  }
}

const statIn = (answer: string): FileStat => {
  const refusal = refusalIn(answer);
  if (refusal) throw refusal;
  const read = readStat(answer);
  if (!read) throw new OutcomeUnknown(UNSAID);
  return read.stat;
};

async function* contentOf(
  reader: ChannelReader,
  count: number,
): AsyncGenerator<Buffer, void, undefined> {
  let left = count;
  while (left > 0) {
    const piece = await reader.piece();
    if (piece === undefined) throw new OutcomeUnknown('the file became shorter while it was read');
    const wanted = piece.subarray(0, left);
    left -= wanted.length;
    yield wanted;
  }
}

/** Gives what a script prints as a stream, which ends the script however it ends itself. */
const streamOf = (
  pieces: AsyncIterable<Buffer>,
  channel: ScriptChannel,
  signal: AbortSignal,
): Readable => {
  const content = Readable.from(pieces, { objectMode: false, highWaterMark: 64 << 10 });
  const fail = (): void => {
    channel.close({ kill: true });
    content.destroy(asError(signal.reason));
  };
  signal.addEventListener('abort', fail, { once: true });
  if (signal.aborted) fail();
  content.once('close', () => {
    signal.removeEventListener('abort', fail);
    channel.close({ kill: true });
  });
  return content;
};

const asSupported = (error: unknown): unknown =>
  error instanceof NoShell ? new FileRefused('unsupported', error.message) : error;

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));
