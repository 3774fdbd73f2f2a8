import { randomBytes } from 'node:crypto';
import type { Readable } from 'node:stream';
import {
  FileRefused,
  type FileEvent,
  type FilePage,
  type FilePlace,
  type FileStat,
  type FolderRequest,
  type ListRequest,
  type MoveRequest,
  type OpenedFile,
  type OpenRequest,
  type SandboxFiles,
  type WatchRequest,
  type WriteRequest,
  type WrittenFile,
  type WrittenTree,
} from '../files.ts';
import { OutcomeUnknown } from '../sandbox-driver.ts';
import { ByteQueue } from '../../lib/streams/byte-queue.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { AgentCall, AgentCallTerms } from './agent-call.ts';
import { EventReader, StatReader, strange } from './agent-stats.ts';

const EVENTS_AT_ONCE = 256;
const MOST_PAGE = 4 << 20;

type Tokens = readonly (string | Buffer)[];

export type CallTerms = Pick<AgentCallTerms, 'signal' | 'rawBytes' | 'body' | 'acknowledges'>;

/**
 * Each call is a connection to an agent, one of the sandbox's processes with only their rights.
 * Subclasses define how to reach it.
 */
export abstract class AgentFiles implements SandboxFiles {
  readonly provided = true;

  abstract prepare(id: InstanceId): void;

  /**
   * True if an agent may outlive its link: it then keeps its answers to changes, and lost ones are
   * asked for again.
   */
  protected readonly keepsAnswers: boolean = false;

  /** Resolves once an agent has taken the request; rejects like `SandboxFiles`. */
  protected abstract begin(place: FilePlace, tokens: Tokens, terms: CallTerms): Promise<AgentCall>;

  async stat(place: FilePlace, signal: AbortSignal): Promise<FileStat> {
    return new StatReader(await this.#done(place, ['stat'], signal)).stat();
  }

  async open(place: FilePlace, { range }: OpenRequest, signal: AbortSignal): Promise<OpenedFile> {
    const call = await this.#begin(place, ['read', ...rangeTokens(range)], {
      signal,
      rawBytes: (head) => {
        const { start, end } = openedFrom(head);
        return end - start;
      },
    });
    return { ...openedFrom(await call.head()), content: call.content };
  }

  async write(
    place: FilePlace,
    { content, ...request }: WriteRequest & { readonly content: Readable | Buffer },
    signal: AbortSignal,
  ): Promise<WrittenFile> {
    const { mode, overwrite, ifMatch, parents, metadata = {} } = request;
    const tokens = [
      'write',
      ...modeToken(mode),
      ...(overwrite ? [] : ['new', '1']),
      ...(parents ? ['parents', '1'] : []),
      ...(ifMatch === undefined ? [] : ['ifmatch', versionsToken(ifMatch)]),
      ...Object.entries(metadata).flatMap(([key, value]) => [`+${key}`, value]),
    ];
    return writtenFrom(
      'destroy' in content
        ? await this.#sent(place, tokens, { content, signal })
        : await this.#changed(place, tokens, { signal, body: content }),
    );
  }

  async remove(
    place: FilePlace,
    { recursive }: { readonly recursive: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    await this.#changed(place, ['remove', ...(recursive ? ['recursive', '1'] : [])], { signal });
  }

  async list(place: FilePlace, request: ListRequest, signal: AbortSignal): Promise<FilePage> {
    try {
      return await this.#page(place, request, signal);
    } catch (error) {
      if (!this.keepsAnswers || !(error instanceof OutcomeUnknown)) throw error;
      signal.throwIfAborted();
      return await this.#page(place, request, signal);
    }
  }

  async #page(
    place: FilePlace,
    { depth, limit, cursor }: ListRequest,
    signal: AbortSignal,
  ): Promise<FilePage> {
    const call = await this.#begin(
      place,
      [
        'list',
        'depth',
        String(depth),
        'limit',
        String(limit),
        ...(cursor === undefined ? [] : ['cursor', pathOfCursor(cursor)]),
      ],
      { signal },
    );
    const pieces = new ByteQueue();
    let bytes = 0;
    for await (const piece of call.content as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > MOST_PAGE)
        throw new OutcomeUnknown("the sandbox's agent for files lists too many entries");
      call.hold(bytes);
      pieces.push(piece);
    }
    const last = await call.answer();
    const reader = new StatReader(pieces.takeAll());
    const entries = [];
    while (!reader.atEnd) {
      if (entries.length === limit) throw strange();
      entries.push(reader.entry());
    }
    return { entries, next: last.length > 0 ? last.toString('base64url') : undefined };
  }

  async move(
    place: FilePlace,
    { to, overwrite }: MoveRequest,
    signal: AbortSignal,
  ): Promise<FileStat> {
    const tokens = ['move', 'to', to, ...(overwrite ? [] : ['new', '1'])];
    return new StatReader(await this.#changed(place, tokens, { signal })).stat();
  }

  async mkdir(
    place: FilePlace,
    { mode, parents }: FolderRequest,
    signal: AbortSignal,
  ): Promise<WrittenFile> {
    const tokens = ['mkdir', ...modeToken(mode), ...(parents ? ['parents', '1'] : [])];
    return writtenFrom(await this.#changed(place, tokens, { signal }));
  }

  async watch(
    place: FilePlace,
    { recursive }: WatchRequest,
    signal: AbortSignal,
  ): Promise<AsyncIterable<readonly FileEvent[]>> {
    const tokens = ['watch', ...(recursive ? ['recursive', '1'] : [])];
    const call = await this.#begin(place, tokens, { signal });
    return eventsOf(call.content);
  }

  async readTree(place: FilePlace, signal: AbortSignal): Promise<Readable> {
    return (await this.#begin(place, ['pack'], { signal })).content;
  }

  async writeTree(place: FilePlace, archive: Readable, signal: AbortSignal): Promise<WrittenTree> {
    const reader = new StatReader(
      await this.#sent(place, ['unpack'], { content: archive, signal }),
    );
    return { entries: reader.number(), bytes: reader.number() };
  }

  async #done(place: FilePlace, tokens: Tokens, signal: AbortSignal): Promise<Buffer> {
    return await (await this.#begin(place, tokens, { signal })).answer();
  }

  /** Does not read the body before the agent asks for it, and destroys it on failure. */
  async #sent(
    place: FilePlace,
    tokens: Tokens,
    { content, signal }: { readonly content: Readable; readonly signal: AbortSignal },
  ): Promise<Buffer> {
    try {
      return await this.#changed(place, tokens, {
        signal,
        send: (call) => call.send(content),
      });
    } catch (error) {
      content.destroy();
      throw error;
    }
  }

  /** Asks again for a lost answer: the change may have been made. */
  async #changed(
    place: FilePlace,
    [operation = '', ...values]: Tokens,
    { send, ...terms }: CallTerms & { readonly send?: (call: AgentCall) => Promise<void> },
  ): Promise<Buffer> {
    const id = this.keepsAnswers ? ['id', randomBytes(16).toString('hex')] : [];
    try {
      const kept = { ...terms, acknowledges: this.keepsAnswers };
      const call = await this.#begin(place, [operation, ...id, ...values], kept);
      await send?.(call);
      return await call.answer();
    } catch (error) {
      if (!this.keepsAnswers || !(error instanceof OutcomeUnknown)) throw error;
      const { signal } = terms;
      return await this.#done(place, ['answer', ...id], signal).catch((second: unknown) => {
        throw signal.aborted ? second : error;
      });
    }
  }

  #begin(
    place: FilePlace,
    [operation = '', ...values]: Tokens,
    terms: CallTerms,
  ): Promise<AgentCall> {
    return this.begin(place, [operation, 'path', place.path, ...values], terms);
  }
}

async function* eventsOf(content: Readable): AsyncGenerator<readonly FileEvent[], void, undefined> {
  const reader = new EventReader();
  for await (const piece of content) {
    const events = reader.feed(piece as Buffer);
    for (let at = 0; at < events.length; at += EVENTS_AT_ONCE)
      yield events.slice(at, at + EVENTS_AT_ONCE);
  }
}

const writtenFrom = (answer: Buffer): WrittenFile => {
  const reader = new StatReader(answer);
  return { stat: reader.stat(), created: reader.flag() };
};

const openedFrom = (head: Buffer): Omit<OpenedFile, 'content'> => {
  const reader = new StatReader(head);
  const opened = { stat: reader.stat(), start: reader.number(), end: reader.number() };
  const { stat, start, end } = opened;
  if (start > end || end > stat.size || !Number.isSafeInteger(stat.size)) throw strange();
  return opened;
};

const modeToken = (mode: number | undefined): Tokens =>
  mode === undefined ? [] : ['mode', String(mode)];

const versionsToken = (versions: NonNullable<WriteRequest['ifMatch']>): string =>
  versions === 'any'
    ? 'any'
    : versions.map(({ size, mtimeNs }) => `${size}:${mtimeNs}`).join(' ') || 'none';

const rangeTokens = (range: OpenRequest['range']): Tokens => {
  if (!range) return [];
  if ('suffix' in range) return ['suffix', String(range.suffix)];
  return [
    'start',
    String(range.start),
    // The agent's `end` is exclusive.
    ...(range.end === undefined ? [] : ['end', String(range.end + 1)]),
  ];
};

const MOST_CURSOR = 8_192;

const pathOfCursor = (cursor: string): Buffer => {
  const path = Buffer.from(cursor, 'base64url');
  const parts = path.toString('latin1').split('/');
  if (
    cursor.length > MOST_CURSOR ||
    path.toString('base64url') !== cursor ||
    path.includes(0) ||
    parts.some((part) => part === '' || part === '.' || part === '..' || part.length > 255)
  )
    throw new FileRefused('bad-cursor', 'the cursor does not belong to this path');
  return path;
};
