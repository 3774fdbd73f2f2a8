import { createHash } from 'node:crypto';
import {
  FileRefused,
  type FileEntry,
  type FilePage,
  type ListRequest,
} from '../../contracts/files.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { scriptLines } from '../streams/pod-script.ts';
import type { ScriptChannel } from '../streams/script-channel.ts';
import { ChannelReader } from './channel-reader.ts';
import { refusalIn } from './file-refusals.ts';
import { textInput, type PodPlace } from './file-scripts.ts';
import { readStats } from './file-stats.ts';

const NAME_BYTES = 8 << 10;
/** Bytes of the paths of a page, each with that of its folder, which answers have before it. */
const PAGE_BYTES = 1 << 20;
/** Bounds what is told of a page's names, in bytes. */
const ANSWER_BYTES = 4 << 20;
/** Bytes of names that are looked at for one page. */
const LOOK_BYTES = 64 << 20;
/** Bounds what its links say. */
const LINK_BYTES = 8 << 20;
/** Names, and their bytes, that are gathered beyond a page until the largest are dropped. */
const SLACK = 1_000;
const CURSOR = /^(\d{1,2}) ([0-9a-f]{16}) (.+)$/s;

interface Listing extends PodPlace {
  readonly request: ListRequest;
  readonly signal: AbortSignal;
}

type Open = (script: 'list' | 'links', input: Buffer) => Promise<ScriptChannel>;

/**
 * Lists a folder in the order of the bytes of its names: a page is what comes next behind the last
 * of the page before. All names are looked at for each page; few are kept.
 */
export const listFolder = async (
  open: Open,
  { path, request, signal }: Listing,
): Promise<FilePage> => {
  const after = request.cursor === undefined ? '' : readCursor(request.cursor, path, request);
  const channel = await open('list', Buffer.concat([scriptLines(request.depth), textInput(path)]));
  const opened = [channel];
  const abort = (): void => {
    for (const each of opened) each.close({ kill: true });
  };
  const openLinks = async (input: Buffer): Promise<ScriptChannel> => {
    const links = await open('links', input);
    opened.push(links);
    if (signal.aborted) abort();
    return links;
  };
  signal.addEventListener('abort', abort, { once: true });
  try {
    const reader = new ChannelReader(channel);
    const first = await reader.line();
    if (first !== 'folder')
      throw refusalIn(first) ?? new FileRefused('denied', 'it can not be read');
    const { page, more } = await nextNames(reader, {
      after,
      most: request.limit,
      above: path.length,
      hold: (bytes) => channel.hold(bytes),
    });
    void channel.write(Buffer.from(page.map((name) => `${name}\0`).join(''), 'latin1'));
    channel.endInput();
    const told = (await reader.all(ANSWER_BYTES)).toString('latin1');
    if (!told.endsWith('\0')) throw cutShort();
    const stats = readStats(page, told);
    const links = await linksOf(
      openLinks,
      path,
      page.filter((name) => stats.get(name)?.kind === 'link'),
    );
    const entries = page.flatMap((name): readonly FileEntry[] => {
      const stat = stats.get(name);
      const target = links.get(name);
      if (!stat) return [];
      return [{ path: below(name), stat: target === undefined ? stat : { ...stat, target } }];
    });
    const last = page.at(-1);
    if (!more || last === undefined) return { entries };
    return { entries, next: writeCursor(last, path, request) };
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', abort);
    channel.close();
  }
};

interface Wanted {
  readonly after: string;
  readonly most: number;
  /** Bytes that stand before each of them. */
  readonly above: number;
  /** Counts the bytes that are kept. Throws where they are too many. */
  readonly hold: (bytes: number) => void;
}

/** The first names behind one, in order, and whether there are others behind them. */
const nextNames = async (
  reader: ChannelReader,
  { after, most, above, hold }: Wanted,
): Promise<{ readonly page: readonly string[]; readonly more: boolean }> => {
  let kept: string[] = [];
  let bytes = 0;
  let looked = 0;
  let more = false;
  const shorten = (): void => {
    kept.sort(inOrder);
    bytes = 0;
    let end = 0;
    for (; end < kept.length && end < most && bytes < PAGE_BYTES; end += 1)
      bytes += above + (kept[end]?.length ?? 0);
    more ||= end < kept.length;
    kept = kept.slice(0, end);
  };
  for (;;) {
    const name = (await reader.until(Buffer.of(0), NAME_BYTES)).toString('latin1');
    if (name === '') break;
    looked += name.length;
    if (looked > LOOK_BYTES)
      throw new FileRefused('too-many', 'there is too much below it to list');
    if (name <= after) continue;
    kept.push(name);
    bytes += above + name.length;
    hold(bytes);
    if (kept.length > most + SLACK || bytes > 3 * PAGE_BYTES) shorten();
  }
  shorten();
  return { page: kept, more };
};

const linksOf = async (
  open: (input: Buffer) => Promise<ScriptChannel>,
  folder: Buffer,
  names: readonly string[],
): Promise<ReadonlyMap<string, Buffer>> => {
  if (names.length === 0) return new Map();
  const input = [
    textInput(folder),
    Buffer.from(names.map((each) => `${each}\0`).join(''), 'latin1'),
  ];
  const channel = await open(Buffer.concat(input));
  channel.endInput();
  try {
    const answer = await new ChannelReader(channel).all(LINK_BYTES);
    const said = answer.toString('latin1');
    const targets = said.split('\0');
    if (targets.length <= names.length) throw refusalIn(said) ?? cutShort();
    return new Map(names.map((name, at) => [name, Buffer.from(targets[at] ?? '', 'latin1')]));
  } finally {
    channel.close();
  }
};

const cutShort = (): OutcomeUnknown =>
  new OutcomeUnknown('the sandbox does not say all that is there');

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Without the `./` that find begins with. */
const below = (name: string): Buffer => Buffer.from(name.slice(2), 'latin1');

const hashOf = (path: Buffer): string =>
  createHash('sha256').update(path).digest('hex').slice(0, 16);

const writeCursor = (last: string, path: Buffer, { depth }: ListRequest): string =>
  Buffer.from(`${depth} ${hashOf(path)} ${last}`, 'latin1').toString('base64url');

const readCursor = (cursor: string, path: Buffer, { depth }: ListRequest): string => {
  const [, ofDepth, ofPath, last] =
    CURSOR.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (last === undefined || Number(ofDepth) !== depth || ofPath !== hashOf(path))
    throw new FileRefused('bad-cursor', 'the cursor is none that was answered for this path');
  return last;
};
