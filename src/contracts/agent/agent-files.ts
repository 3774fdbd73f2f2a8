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
/** Bytes of a page of a list; agents send less than half of it. */
const MOST_PAGE = 4 << 20;

type Tokens = readonly (string | Buffer)[];

/** Has what a call takes besides its words. */
export type CallTerms = Pick<AgentCallTerms, 'signal' | 'rawBytes' | 'body' | 'acknowledges'>;

/**
 * The files of sandboxes by the agents in them: each call is a connection to an agent, which is one
 * of the sandbox's processes and has no more rights than they (native/README.md). Who extends it
 * says how an agent is reached.
 */
export abstract class AgentFiles implements SandboxFiles {
  readonly provided = true;

  abstract prepare(id: InstanceId): void;

  /**
   * The way to an agent may be lost where the agent is not: it keeps its answers to changes, and is
   * asked again.
   */
  protected readonly keepsAnswers: boolean = false;

  /** Resolves once an agent has taken the request; rejects as `SandboxFiles` says. */
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

  /** With a body. It is not read before the agent wants it, and destroyed where that fails. */
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

  /** Asks for an answer that was lost: what was to be done may have been. */
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

  /** The path goes right behind what is to be done. */
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

/** Clients are told of the range before any of it came. */
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
    // The agent does not count the last byte.
    ...(range.end === undefined ? [] : ['end', String(range.end + 1)]),
  ];
};

const MOST_CURSOR = 8_192;

/** A cursor is the path that was given last. */
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
