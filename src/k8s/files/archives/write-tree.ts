import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { FileRefused, type WrittenTree } from '../../../contracts/files.ts';
import { scriptLines } from '../../streams/pod-script.ts';
import type { ScriptChannel } from '../../streams/script-channel.ts';
import { ChannelReader } from '../channel-reader.ts';
import { refusalIn } from '../file-refusals.ts';
import { textInput, type PodPlace } from '../file-scripts.ts';
import { answerTo, unsaid } from '../file-write.ts';
import { SafeEntries, shownText } from './safe-entries.ts';
import { archiveEnd, paddingOf, TarDamaged, writeHeader, type TarEntry } from './tar-header.ts';
import { tarParts } from './tar-parts.ts';

interface Unpacking extends PodPlace {
  readonly archive: Readable;
  readonly signal: AbortSignal;
}

/** Bytes that are gathered for one frame. */
const FRAME = 32 << 10;
const END: TarEntry = {
  ...{ kind: 'file', name: 'end', target: '', size: 'whole\n'.length },
  ...{ mode: 0o600, uid: 0, gid: 0, mtime: 0 },
};

/**
 * Unpacks an archive. The container's tar gets one that was made anew of what each entry says, once
 * that was found to lead nowhere else; so it need not be trusted to refuse anything.
 */
export const writeTree = async (
  open: (input: Buffer) => Promise<ScriptChannel>,
  { path, archive, signal }: Unpacking,
): Promise<WrittenTree> => {
  const id = randomBytes(8).toString('hex');
  const channel = await open(Buffer.concat([textInput(path), scriptLines(id)]));
  const abort = (): void => {
    archive.destroy(signal.reason instanceof Error ? signal.reason : new Error('called off'));
  };
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  const made = new SafeArchive(archive);
  const content = Readable.from(made.bytes(), { objectMode: false, highWaterMark: 2 * FRAME });
  const stop = (): void => {
    archive.destroy();
    content.destroy();
  };
  try {
    const reader = new ChannelReader(channel);
    const answer = await answerTo(content, { channel, reader, end: archiveEnd(), stop });
    if (made.refusal) throw made.refusal;
    requireDone(answer);
    return { entries: made.entries, bytes: made.contentBytes };
  } catch (error) {
    throw error instanceof TarDamaged ? new FileRefused('bad-archive', error.message) : error;
  } finally {
    signal.removeEventListener('abort', abort);
    channel.close();
  }
};

/** Tells what tar, or the renaming, could not do. */
const requireDone = (answer: string): void => {
  if (/^done$/m.test(answer)) return;
  const [, step, why = ''] = /^! (unpack|place): (.*)$/m.exec(answer) ?? [];
  const known = refusalIn(answer);
  const isKnown = known instanceof FileRefused && !['not-found', 'exists'].includes(known.problem);
  if (step === undefined || isKnown) throw known ?? unsaid();
  const said = why.replace(/status \d+ $/, '').trim();
  throw new FileRefused('bad-archive', `the archive can not be unpacked: ${shownText(said)}`);
};

/** An archive made anew, of the entries of another up to its end or the first that is refused. */
class SafeArchive {
  entries = 0;
  contentBytes = 0;
  refusal: FileRefused | undefined;
  readonly #source: Readable;
  readonly #safe = new SafeEntries();

  constructor(source: Readable) {
    this.#source = source;
  }

  async *bytes(): AsyncGenerator<Buffer, void, undefined> {
    let gathered: Buffer[] = [];
    let length = 0;
    for await (const piece of this.#pieces()) {
      gathered.push(piece);
      length += piece.length;
      if (length < FRAME) continue;
      yield Buffer.concat(gathered);
      gathered = [];
      length = 0;
    }
    yield Buffer.concat([
      ...gathered,
      writeHeader(END, 'gnu'),
      Buffer.from('whole\n'.padEnd(512, '\0')),
    ]);
  }

  async *#pieces(): AsyncGenerator<Buffer, void, undefined> {
    let padding = 0;
    let isWanted = false;
    for await (const part of tarParts(this.#source as AsyncIterable<Buffer>)) {
      if ('content' in part) {
        if (isWanted) yield part.content;
        continue;
      }
      if (padding > 0) yield Buffer.alloc(padding);
      padding = 0;
      const entry = this.#next(part.entry);
      if (this.refusal) return;
      isWanted = entry?.kind === 'file';
      if (!entry) continue;
      yield writeHeader(entry, 'gnu');
      padding = paddingOf(entry.size);
    }
    if (padding > 0) yield Buffer.alloc(padding);
  }

  #next(entry: TarEntry): TarEntry | undefined {
    try {
      const safe = this.#safe.next(entry);
      if (!safe) return undefined;
      this.entries += 1;
      const size = safe.kind === 'file' ? safe.size : 0;
      this.contentBytes += size;
      const target = safe.kind === 'hard-link' ? `t/${safe.target}` : safe.target;
      return { ...safe, name: `t/${safe.name}`, target, size, uid: 0, gid: 0 };
    } catch (error) {
      if (!(error instanceof FileRefused)) throw error;
      this.refusal = error;
      return undefined;
    }
  }
}
