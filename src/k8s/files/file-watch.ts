import { randomBytes } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import {
  FileRefused,
  type FileEvent,
  type FileStat,
  type WatchRequest,
} from '../../contracts/files.ts';
import { OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { scriptLines } from '../streams/pod-script.ts';
import type { ScriptChannel } from '../streams/script-channel.ts';
import { ChannelReader } from './channel-reader.ts';
import { refusalIn } from './file-refusals.ts';
import { textInput, type PodPlace } from './file-scripts.ts';
import { readStats } from './file-stats.ts';

const NUL = Buffer.of(0);
const BOTH_NUL = Buffer.of(0, 0);
/** Names of one look, and bytes of them, and of what is told of them. */
const MOST_NAMES = 10_000;
const NAMES_BYTES = 1 << 20;
const LOOK_BYTES = 4 << 20;
/** A look waits for the next one; what is kept of each name beside its bytes. */
const LOOKS_KEPT = 2;
const STAT_BYTES = 200;
const BATCH = 256;
/** Looks are read so far apart: what runs there may say more of them than it was told to. */
const REST_MS = 900;
/** Folders below one another that are looked at. */
const DEPTH = 64;

interface Watching extends PodPlace {
  readonly request: WatchRequest;
  readonly signal: AbortSignal;
  /** Waits between two looks. */
  readonly rest?: (milliseconds: number) => Promise<unknown>;
}

type Look = ReadonlyMap<string, FileStat>;

/**
 * Watches a folder by looking at it each second: what was made and removed between two looks is not
 * told of. Resolves after the first.
 */
export const watchFolder = async (
  open: (input: Buffer) => Promise<ScriptChannel>,
  { path, request, signal, rest = setTimeout }: Watching,
): Promise<AsyncIterable<readonly FileEvent[]>> => {
  const id = randomBytes(8).toString('hex');
  const channel = await open(
    Buffer.concat([scriptLines(id, request.recursive ? DEPTH : 1), textInput(path)]),
  );
  const leave = (): void => {
    channel.close();
  };
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  const reader = new ChannelReader(channel);
  const hold = (bytes: number): void => {
    try {
      channel.hold(bytes);
    } catch {
      throw new FileRefused('too-many', 'what is watched takes as much memory as it may');
    }
  };
  const lookAgain = (): Promise<Look | undefined> => readLook(reader, hold);
  try {
    const first = await reader.line();
    if (first !== 'folder') throw refusalIn(first) ?? new OutcomeUnknown('it can not be watched');
    const look = await lookAgain();
    const next = async (): Promise<Look | undefined> => {
      await rest(REST_MS);
      return await lookAgain();
    };
    return changes(look, next, () => {
      signal.removeEventListener('abort', leave);
      leave();
    });
  } catch (error) {
    leave();
    throw signal.aborted ? signal.reason : error;
  }
};

async function* changes(
  first: Look | undefined,
  next: () => Promise<Look | undefined>,
  leave: () => void,
): AsyncGenerator<readonly FileEvent[], void, undefined> {
  try {
    let before = first;
    while (before) {
      const now = await next();
      const events = now ? [...between(before, now)] : [GONE];
      for (let at = 0; at < events.length; at += BATCH) yield events.slice(at, at + BATCH);
      before = now;
    }
    if (!first) yield [GONE];
  } finally {
    leave();
  }
}

const GONE: FileEvent = { type: 'gone', path: Buffer.alloc(0), isFolder: true };

/** How the folder stands; undefined where it is gone. `hold` counts what is kept of looks. */
const readLook = async (
  reader: ChannelReader,
  hold: (bytes: number) => void,
): Promise<Look | undefined> => {
  const names: string[] = [];
  let bytes = 0;
  for (;;) {
    const name = (await reader.until(NUL, NAMES_BYTES)).toString('latin1');
    if (name === '') break;
    names.push(name);
    bytes += name.length;
    if (names.length > MOST_NAMES || bytes > NAMES_BYTES)
      throw new FileRefused('too-many', `it has more than ${MOST_NAMES} files, or very long names`);
  }
  const told = (await reader.until(BOTH_NUL, LOOK_BYTES)).toString('latin1');
  if (told === 'gone') return undefined;
  hold(LOOKS_KEPT * (bytes + names.length * STAT_BYTES));
  return readStats(names, told);
};

function* between(before: Look, now: Look): Iterable<FileEvent> {
  for (const [name, stat] of before)
    if (now.get(name)?.kind !== stat.kind) yield event('removed', name, stat);
  for (const [name, stat] of now) {
    const old = before.get(name);
    if (old?.kind !== stat.kind) yield event('created', name, stat);
    else if (stat.kind !== 'folder' && (old.size !== stat.size || old.mtimeNs !== stat.mtimeNs))
      yield event('changed', name, stat);
    else if (old.mode !== stat.mode || old.uid !== stat.uid || old.gid !== stat.gid)
      yield event('attributes', name, stat);
  }
}

const event = (type: FileEvent['type'], name: string, { kind }: FileStat): FileEvent => ({
  type,
  path: Buffer.from(name.slice(2), 'latin1'),
  isFolder: kind === 'folder',
});
