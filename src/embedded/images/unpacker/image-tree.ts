import { ImageRefused } from './image-refused.ts';
import { shownName, type LayerEntry } from './layer-entry.ts';

/** Steps apply in order; paths are relative to the root. */
export type Step =
  | { readonly kind: 'folder'; readonly path: string }
  /** The content follows. */
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly executable: boolean;
      readonly modifiedAt: number;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'hard-link'; readonly path: string; readonly to: string }
  | { readonly kind: 'remove'; readonly path: string };

interface Folder {
  readonly kind: 'folder';
  /** Last layer with an entry for this name or below it. */
  layer: number;
  readonly children: Map<string, Node>;
}
interface Leaf {
  readonly kind: 'file' | 'link';
  layer: number;
  readonly target: string;
}
type Node = Folder | Leaf;

/**
 * Decides the effect of each entry without a lookup on the disk, so writes only pass through
 * folders made here. Within a layer, the later entry of a name wins.
 */
export class ImageTree {
  readonly #root: Folder = { kind: 'folder', layer: 0, children: new Map() };
  readonly #maxEntries: number;
  #layer = 0;
  #entries = 0;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get entries(): number {
    return this.#entries;
  }

  nextLayer(): void {
    this.#layer += 1;
  }

  apply(entry: LayerEntry): readonly Step[] {
    this.#entries += 1;
    if (this.#entries > this.#maxEntries)
      throw new ImageRefused(`it has more than ${this.#maxEntries} entries`);
    switch (entry.kind) {
      case 'nothing':
        return [];
      case 'whiteout':
        return this.#whiteout(entry.path);
      case 'opaque':
        return this.#opaque(entry.path);
      case 'folder':
        return entry.path.length === 0 ? [] : this.#putFolder(entry.path);
      case 'file':
        return this.#putLeaf(
          entry.path,
          { kind: 'file', layer: this.#layer, target: '' },
          { ...entry, path: entry.path.join('/') },
        );
      case 'link':
        return this.#putLink(entry.path, entry.target);
      case 'hard-link':
        return this.#putHardLink(entry.path, entry.to);
    }
  }

  /** Follows no link. */
  kindOf(path: readonly string[]): Node['kind'] | 'absent' {
    return this.#find(path)?.kind ?? 'absent';
  }

  #find(path: readonly string[]): Node | undefined {
    let at: Node | undefined = this.#root;
    for (const name of path) at = at?.kind === 'folder' ? at.children.get(name) : undefined;
    return at;
  }

  /** Follows no link. */
  #above(path: readonly string[]): { readonly folder: Folder; readonly steps: Step[] } {
    const steps: Step[] = [];
    let folder = this.#root;
    for (let depth = 1; depth < path.length; depth += 1) {
      const name = path[depth - 1]!;
      let next = folder.children.get(name);
      if (next && next.kind !== 'folder') {
        throw new ImageRefused(
          `${shownName(path.join('/'))} goes through ` +
            `${shownName(path.slice(0, depth).join('/'))}, which is a ${next.kind}`,
        );
      }
      if (!next) {
        next = { kind: 'folder', layer: this.#layer, children: new Map() };
        folder.children.set(name, next);
        steps.push({ kind: 'folder', path: path.slice(0, depth).join('/') });
      }
      next.layer = this.#layer;
      folder = next;
    }
    return { folder, steps };
  }

  #putFolder(path: readonly string[]): readonly Step[] {
    const { folder, steps } = this.#above(path);
    const name = path.at(-1)!;
    const before = folder.children.get(name);
    if (before?.kind === 'folder') {
      before.layer = this.#layer;
      return steps;
    }
    folder.children.set(name, { kind: 'folder', layer: this.#layer, children: new Map() });
    return [...steps, ...removal(before, path), { kind: 'folder', path: path.join('/') }];
  }

  #putLeaf(path: readonly string[], leaf: Leaf, step: Step): readonly Step[] {
    const { folder, steps } = this.#above(path);
    const name = path.at(-1)!;
    const before = folder.children.get(name);
    folder.children.set(name, leaf);
    return [...steps, ...removal(before, path), step];
  }

  #putLink(path: readonly string[], target: string): readonly Step[] {
    return this.#putLeaf(
      path,
      { kind: 'link', layer: this.#layer, target },
      { kind: 'link', path: path.join('/'), target },
    );
  }

  #putHardLink(path: readonly string[], to: readonly string[]): readonly Step[] {
    const shown = shownName(path.join('/'));
    for (let depth = 1; depth < to.length; depth += 1) {
      if (this.kindOf(to.slice(0, depth)) === 'link')
        throw new ImageRefused(
          `the hard link ${shown} goes through ` +
            `${shownName(to.slice(0, depth).join('/'))}, which is a link`,
        );
    }
    const found = this.#find(to);
    if (!found || found.kind === 'folder')
      throw new ImageRefused(
        `the hard link ${shown} leads to no file of the image: ${shownName(to.join('/'))}`,
      );
    if (path.join('/') === to.join('/')) return [];
    if (to.join('/').startsWith(`${path.join('/')}/`))
      throw new ImageRefused(`the hard link ${shown} would replace its target`);
    if (found.kind === 'link') return this.#putLink(path, found.target);
    return this.#putLeaf(
      path,
      { kind: 'file', layer: this.#layer, target: '' },
      { kind: 'hard-link', path: path.join('/'), to: to.join('/') },
    );
  }

  /** A name of this layer stays. */
  #whiteout(path: readonly string[]): readonly Step[] {
    const above = this.#find(path.slice(0, -1));
    const name = path.at(-1)!;
    const found = above?.kind === 'folder' ? above.children.get(name) : undefined;
    if (above?.kind !== 'folder' || !found) return [];
    return this.#hide(above, found, path);
  }

  #opaque(path: readonly string[]): readonly Step[] {
    const folder = this.#find(path);
    if (folder?.kind !== 'folder') return [];
    return [...folder.children].flatMap(([name, node]) =>
      this.#hide(folder, node, [...path, name]),
    );
  }

  #hide(above: Folder, node: Node, path: readonly string[]): readonly Step[] {
    if (node.layer < this.#layer) {
      above.children.delete(path.at(-1)!);
      return [{ kind: 'remove', path: path.join('/') }];
    }
    return node.kind === 'folder'
      ? [...node.children].flatMap(([child, below]) => this.#hide(node, below, [...path, child]))
      : [];
  }
}

const removal = (before: Node | undefined, path: readonly string[]): readonly Step[] =>
  before ? [{ kind: 'remove', path: path.join('/') }] : [];
