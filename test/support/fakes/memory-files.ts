import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { extract, pack } from 'tar-stream';
import {
  FileRefused,
  type FileEvent,
  type FilePlace,
  type FileProblem,
  type FileStat,
  type SandboxFiles,
} from '../../../src/contracts/files.ts';
import { Deferred } from '../../../src/lib/deferred.ts';

interface Kept {
  readonly stat: FileStat;
  readonly bytes: Buffer;
}

/**
 * Only files and folders; each sandbox has `/home/sandbox` and `/tmp`. Calls reject with what
 * `running` throws.
 */
export class MemoryFiles implements SandboxFiles {
  readonly provided = true;
  readonly #sandboxes = new Map<string, Map<string, Kept>>();
  readonly #watching = new Set<(id: string, event: FileEvent & { readonly at: string }) => void>();
  readonly #running: (id: string) => void;
  #clock = 1_700_000_000_000_000_000n;

  constructor(running: (id: string) => void = () => {}) {
    this.#running = running;
  }

  /** Instances that were prepared for calls. */
  readonly prepared: string[] = [];

  prepare = (id: string): void => {
    this.prepared.push(id);
  };

  stat = async (place: FilePlace): Promise<FileStat> => this.#at(place).stat;

  open: SandboxFiles['open'] = async (place, { range }) => {
    const { stat, bytes } = this.#at(place);
    if (stat.kind === 'folder') throw refused('is-a-folder');
    let [start, end] = [0, bytes.length];
    if (range && 'suffix' in range) start = Math.max(0, end - range.suffix);
    else if (range) {
      start = range.start;
      end = Math.min(end, (range.end ?? end) + 1);
      if (start >= bytes.length) throw new FileRefused('bad-range', 'behind the end', bytes.length);
    }
    return { stat, start, end, content: Readable.from([bytes.subarray(start, end)]) };
  };

  write: SandboxFiles['write'] = async (place, { content, ...request }) => {
    try {
      const before = this.#of(place).get(nameOf(place));
      if (before && !request.overwrite) throw refused('exists');
      if (before?.stat.kind === 'folder') throw refused('is-a-folder');
      const { ifMatch } = request;
      const same = (stat: FileStat): boolean =>
        ifMatch === 'any' ||
        ifMatch?.some(({ size, mtimeNs }) => size === stat.size && mtimeNs === stat.mtimeNs) ===
          true;
      if (ifMatch && !(before && same(before.stat))) throw refused('changed');
      if (request.metadata) throw refused('no-metadata');
      this.#makeAbove(place, request.parents);
      const bytes = 'destroy' in content ? await buffer(content) : content;
      return this.#put(place, 'file', { mode: request.mode ?? before?.stat.mode ?? 0o644, bytes });
    } catch (error) {
      if ('destroy' in content) content.destroy();
      throw error;
    }
  };

  remove: SandboxFiles['remove'] = async (place, { recursive }) => {
    const name = nameOf(place);
    this.#at(place);
    if (name === '/') throw refused('busy');
    const below = this.#below(place);
    if (below.length > 0 && !recursive) throw refused('not-empty');
    for (const [path] of below) this.#of(place).delete(path);
    this.#of(place).delete(name);
    this.#tell(place, 'removed');
  };

  list: SandboxFiles['list'] = async (place, { depth, limit, cursor }) => {
    if (this.#at(place).stat.kind !== 'folder') throw refused('not-a-folder');
    const from = nameOf(place) === '/' ? 1 : nameOf(place).length + 1;
    const all = this.#below(place)
      .map(([path, { stat }]) => ({ path: path.slice(from), stat }))
      .filter(({ path }) => path.split('/').length <= depth && path > (cursor ?? ''))
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    const shown = all.slice(0, limit);
    const last = all.length > limit ? shown.at(-1)?.path : undefined;
    return {
      entries: shown.map(({ path, stat }) => ({ path: Buffer.from(path, 'latin1'), stat })),
      next: last,
    };
  };

  move: SandboxFiles['move'] = async (place, { to, overwrite }) => {
    const moved = this.#at(place);
    if (nameOf(place) === '/' || nameOf({ ...place, path: to }) === '/') throw refused('busy');
    const target = { ...place, path: to };
    if (this.#of(place).has(nameOf(target)) && !overwrite) throw refused('exists');
    this.#makeAbove(target, false);
    this.#of(place).delete(nameOf(place));
    this.#of(place).set(nameOf(target), moved);
    this.#tell(place, 'removed');
    this.#tell(target, 'created');
    return moved.stat;
  };

  mkdir: SandboxFiles['mkdir'] = async (place, { mode, parents }) => {
    const there = this.#of(place).get(nameOf(place));
    if (there && !(parents && there.stat.kind === 'folder')) throw refused('exists');
    if (there) return { stat: there.stat, created: false };
    this.#makeAbove(place, parents);
    return this.#put(place, 'folder', { mode: mode ?? 0o755, bytes: Buffer.alloc(0) });
  };

  watch: SandboxFiles['watch'] = async (place, { recursive }, signal) => {
    if (this.#at(place).stat.kind !== 'folder') throw refused('not-a-folder');
    const folder = `${nameOf(place)}/`;
    const waiting: FileEvent[] = [];
    let more = new Deferred<void>();
    const hear = (id: string, { at, ...event }: FileEvent & { readonly at: string }): void => {
      const below = at.startsWith(folder) ? at.slice(folder.length) : undefined;
      if (id !== place.id || below === undefined || (below.includes('/') && !recursive)) return;
      waiting.push({ ...event, path: Buffer.from(below, 'latin1') });
      more.resolve();
    };
    this.#watching.add(hear);
    signal.addEventListener('abort', () => more.resolve(), { once: true });
    const forget = (): void => void this.#watching.delete(hear);
    return (async function* () {
      try {
        while (!signal.aborted) {
          await more.promise;
          more = new Deferred();
          if (waiting.length > 0) yield waiting.splice(0);
        }
      } finally {
        forget();
      }
    })();
  };

  readTree: SandboxFiles['readTree'] = async (place) => {
    if (this.#at(place).stat.kind !== 'folder') throw refused('not-a-folder');
    const archive = pack();
    for (const [path, { stat, bytes }] of this.#below(place)) {
      const name = `./${path.slice(nameOf(place).length + 1)}`;
      if (stat.kind === 'folder') archive.entry({ name: `${name}/`, type: 'directory' });
      else archive.entry({ name, mode: stat.mode }, bytes);
    }
    archive.finalize();
    return Readable.from(archive);
  };

  writeTree: SandboxFiles['writeTree'] = async (place, archive) => {
    let entries = 0;
    let size = 0;
    try {
      for await (const entry of archive.pipe(extract())) {
        const { name, type } = entry.header;
        if (name.startsWith('/') || name.split('/').includes('..'))
          throw new FileRefused('bad-archive', `a name leads out of the folder: ${name}`);
        const bytes = await buffer(entry);
        const below = name.replace(/^\.\//, '').replace(/\/$/, '');
        const at = { ...place, path: Buffer.from(`${nameOf(place)}/${below}`, 'latin1') };
        entries += 1;
        size += bytes.length;
        this.#makeAbove(at, true);
        if (below !== '')
          this.#put(at, type === 'directory' ? 'folder' : 'file', { mode: 0o644, bytes });
      }
    } catch (error) {
      archive.destroy();
      throw error instanceof FileRefused ? error : refused('bad-archive');
    }
    return { entries, bytes: size };
  };

  #of(place: FilePlace): Map<string, Kept> {
    this.#running(place.id);
    let files = this.#sandboxes.get(place.id);
    if (!files) {
      files = new Map();
      this.#sandboxes.set(place.id, files);
      for (const path of ['/', '/home', '/home/sandbox', '/tmp'])
        files.set(path, this.#kept('folder', { mode: 0o755, bytes: Buffer.alloc(0) }));
    }
    return files;
  }

  #at(place: FilePlace): Kept {
    const found = this.#of(place).get(nameOf(place));
    if (!found) throw refused('not-found');
    return found;
  }

  #below(place: FilePlace): readonly (readonly [string, Kept])[] {
    const above = nameOf(place) === '/' ? '/' : `${nameOf(place)}/`;
    return [...this.#of(place)].filter(([path]) => path.startsWith(above) && path !== '/');
  }

  #makeAbove(place: FilePlace, make: boolean): void {
    const above = nameOf(place).replace(/\/[^/]*$/, '') || '/';
    const there = this.#of(place).get(above);
    if (there && there.stat.kind !== 'folder') throw refused('not-a-folder');
    if (there) return;
    if (!make) throw refused('not-found');
    const folder = { ...place, path: Buffer.from(above, 'latin1') };
    this.#makeAbove(folder, true);
    this.#put(folder, 'folder', { mode: 0o755, bytes: Buffer.alloc(0) });
  }

  #kept(
    kind: 'file' | 'folder',
    { mode, bytes }: { readonly mode: number; readonly bytes: Buffer },
  ): Kept {
    this.#clock += 1_000_000n;
    const stat = { kind, mode, size: bytes.length, mtimeNs: this.#clock, uid: 1_000, gid: 1_000 };
    return { stat, bytes };
  }

  #put(
    place: FilePlace,
    kind: 'file' | 'folder',
    content: { readonly mode: number; readonly bytes: Buffer },
  ): { readonly stat: FileStat; readonly created: boolean } {
    const created = !this.#of(place).has(nameOf(place));
    const kept = this.#kept(kind, content);
    this.#of(place).set(nameOf(place), kept);
    this.#tell(place, created ? 'created' : 'changed', kind === 'folder');
    return { stat: kept.stat, created };
  }

  #tell(place: FilePlace, type: FileEvent['type'], isFolder = false): void {
    const event = { type, isFolder, path: place.path, at: nameOf(place) };
    for (const hear of this.#watching) hear(place.id, event);
  }
}

/** Bytes as one character each, to serve as a key. */
const nameOf = ({ path }: FilePlace): string => {
  const name = path.toString('latin1').replaceAll(/\/+/g, '/');
  return name.length > 1 ? name.replace(/\/$/, '') : name;
};

const refused = (problem: FileProblem): FileRefused => new FileRefused(problem, problem);
