import { posix } from 'node:path';
import { Code, ConnectError } from '@connectrpc/connect';
import type { FileEntry, FileKind, FileStat } from '../../../../contracts/files.ts';
import { Slices } from '../../../../lib/slices.ts';
import { Refusal } from '../../../../model/refusals.ts';
import type { Operations } from '../../../../services/operations.ts';
import type { AddressedSandbox } from '../../traffic/addressed-sandbox.ts';
import { badArgument } from '../rpc/rpc-errors.ts';
import { entryInfo, SLICE_MS, type EntryInit } from './entry-info.ts';
import { targetAt, type Place } from './homes.ts';

/** Like the kernel's limit. */
const MOST_LINKS = 8;
const MOST_DEPTH = 16;
/** A list is one message. */
const MOST_ENTRIES = 10_000;
const MOST_FOLLOWED = 256;

export class Entries {
  readonly #operations: Pick<Operations, 'statFile' | 'listFiles'>;

  constructor(operations: Pick<Operations, 'statFile' | 'listFiles'>) {
    this.#operations = operations;
  }

  shown({ shown }: Place, stat: FileStat, leadsTo?: FileKind): EntryInit {
    return entryInfo(shown, stat, leadsTo);
  }

  async at(sandbox: AddressedSandbox, place: Place, signal: AbortSignal): Promise<EntryInit> {
    const stat = await this.#stat(sandbox, place.path, signal);
    return entryInfo(place.shown, stat, await this.#leadsTo(sandbox, { ...place, stat }, signal));
  }

  async requireFolder(sandbox: AddressedSandbox, place: Place, signal: AbortSignal): Promise<void> {
    const stat = await this.#stat(sandbox, place.path, signal);
    const kind = (await this.#leadsTo(sandbox, { ...place, stat }, signal)) ?? stat.kind;
    if (kind !== 'folder') throw badArgument(`path: ${place.shown} is not a folder`);
  }

  async in(
    sandbox: AddressedSandbox,
    { place, depth }: { readonly place: Place; readonly depth: number },
    signal: AbortSignal,
  ): Promise<EntryInit[]> {
    const found = await this.#list(sandbox, { place, depth }, signal);
    const links = found.filter(({ stat }) => stat.kind === 'link').slice(0, MOST_FOLLOWED);
    const followed = new Map<FileEntry, FileKind | undefined>();
    for (const link of links) {
      const path = posix.join(place.path, link.path.toString('utf8'));
      followed.set(link, await this.#leadsTo(sandbox, { path, stat: link.stat }, signal));
    }
    const slices = new Slices(SLICE_MS);
    const shown: EntryInit[] = [];
    for (const entry of found) {
      const path = posix.join(place.shown, entry.path.toString('utf8'));
      shown.push(entryInfo(path, entry.stat, followed.get(entry)));
      if (slices.usedUp) await slices.next();
    }
    return shown.sort((a, b) => ((a.path ?? '') < (b.path ?? '') ? -1 : 1));
  }

  async #list(
    sandbox: AddressedSandbox,
    { place, depth }: { readonly place: Place; readonly depth: number },
    signal: AbortSignal,
  ): Promise<readonly FileEntry[]> {
    const target = targetAt(sandbox, place.path);
    try {
      const { entries, next } = await this.#operations.listFiles(sandbox.caller, target, {
        depth: Math.min(Math.max(depth, 1), MOST_DEPTH),
        limit: MOST_ENTRIES,
        signal,
      });
      if (next !== undefined)
        throw new ConnectError(
          `${place.shown} has more than ${MOST_ENTRIES} entries, or their names are too ` +
            'long; list a smaller part of it',
          Code.OutOfRange,
        );
      return entries;
    } catch (error) {
      if (error instanceof Refusal && error.code === 'CONFLICT')
        throw badArgument(`path: ${place.shown} is not a folder`);
      throw error;
    }
  }

  #stat(sandbox: AddressedSandbox, path: string, signal: AbortSignal): Promise<FileStat> {
    return this.#operations.statFile(sandbox.caller, targetAt(sandbox, path), signal);
  }

  async #leadsTo(
    sandbox: AddressedSandbox,
    link: { readonly path: string; readonly stat: FileStat },
    signal: AbortSignal,
  ): Promise<FileKind | undefined> {
    let { path, stat } = link;
    try {
      for (let links = 0; stat.kind === 'link'; links += 1) {
        if (links === MOST_LINKS || !stat.target) return undefined;
        path = posix.resolve(posix.dirname(path), stat.target.toString('utf8'));
        stat = await this.#stat(sandbox, path, signal);
      }
      return stat === link.stat ? undefined : stat.kind;
    } catch (error) {
      if (error instanceof Refusal && NOWHERE.has(error.code)) return undefined;
      throw error;
    }
  }
}

const NOWHERE: ReadonlySet<string> = new Set([
  'FILE_NOT_FOUND',
  'FORBIDDEN',
  'CONFLICT',
  'INVALID_ARGUMENT',
]);
