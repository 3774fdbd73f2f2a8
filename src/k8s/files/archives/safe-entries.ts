import { FileRefused } from '../../../contracts/files.ts';
import type { TarEntry } from './tar-header.ts';

/** Below the kernel's 4,096 with what stands before it while it is unpacked. */
const LONGEST_NAME = 3_840;
const LONGEST_PART = 255;
/** Each folder above an entry is looked for among the links. */
const DEEPEST = 256;
/** Bytes of the names of links that are kept, each with what keeping it costs. */
const MOST_LINK_BYTES = 8 << 20;
const LINK_COST = 64;
const LONGEST_SHOWN = 200;

/**
 * Says of each entry of an archive, in turn, how it is to be unpacked so that nothing leads out of
 * the folder and nothing goes through a link that the archive made.
 */
export class SafeEntries {
  readonly #links = new Set<string>();
  #linkBytes = 0;

  /**
   * Its name and, of a hard link, its target without parts that say nothing. Undefined: the folder
   * itself. Throws FileRefused `bad-archive`, which names the entry.
   */
  next(entry: TarEntry): TarEntry | undefined {
    const name = this.#cleanName(entry.name, 'a name', entry);
    if (entry.kind === 'other') throw refused('an entry is no file, folder or link', entry);
    if (name === '') {
      if (entry.kind !== 'folder') throw refused('an entry has no name', entry);
      return undefined;
    }
    if (entry.kind === 'hard-link') {
      const target = this.#cleanName(entry.target, 'a hard link', entry);
      if (target === '') throw refused('a hard link leads out', entry);
      if (this.#links.has(target)) throw refused('a hard link leads to a link', entry);
      this.#links.delete(name);
      return { ...entry, name, target };
    }
    if (entry.kind === 'folder') {
      if (this.#links.has(name)) throw refused('a link is in the way', entry);
      return { ...entry, name, mode: entry.mode | 0o700 };
    }
    if (entry.kind === 'link') this.#keep(name, entry);
    else this.#links.delete(name);
    return { ...entry, name };
  }

  #cleanName(text: string, what: string, entry: TarEntry): string {
    const parts = text.split('/');
    const isOut = text.startsWith('/') || parts.includes('..');
    if (isOut || text.length > LONGEST_NAME || parts.some((part) => part.length > LONGEST_PART))
      throw refused(`${what} leads out of the folder, or is too long`, entry);
    const said = parts.filter((part) => part !== '' && part !== '.');
    if (said.length > DEEPEST) throw refused(`${what} is too many folders deep`, entry);
    if (this.#links.size > 0)
      for (let count = 1; count < said.length; count += 1)
        if (this.#links.has(said.slice(0, count).join('/')))
          throw refused('a link is in the way', entry);
    return said.join('/');
  }

  #keep(name: string, entry: TarEntry): void {
    if (entry.target === '') throw refused('a link leads nowhere', entry);
    if (!this.#links.has(name)) this.#linkBytes += name.length + LINK_COST;
    if (this.#linkBytes > MOST_LINK_BYTES)
      throw refused('the archive has more links than can be kept in mind', entry);
    this.#links.add(name);
  }
}

const refused = (why: string, { name }: TarEntry): FileRefused =>
  new FileRefused('bad-archive', `${why}: ${shownText(name)}`);

/** Control characters, which a name inside may have. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

/** Shows bytes, given as latin1, as the text that they mostly are. */
export const shownText = (bytes: string): string =>
  Buffer.from(bytes, 'latin1')
    .toString('utf8')
    .replaceAll(UNPRINTABLE, '\uFFFD')
    .slice(0, LONGEST_SHOWN);
