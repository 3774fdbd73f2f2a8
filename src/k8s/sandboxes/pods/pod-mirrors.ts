import { Mirror } from '../../../model/mirror/mirror.ts';
import type { MirrorDeps } from '../../../model/mirror/mirror-terms.ts';
import type { StoredPod } from './pod-resource.ts';

/** Namespaces are watched separately, so their revisions are not comparable. */
export class PodMirrors {
  readonly #deps: MirrorDeps<StoredPod>;
  readonly #mirrors = new Map<string, Mirror<StoredPod>>();
  #doubts: (key: string) => void = () => undefined;

  constructor(deps: MirrorDeps<StoredPod>) {
    this.#deps = deps;
  }

  in(namespace: string): Mirror<StoredPod> {
    let mirror = this.#mirrors.get(namespace);
    if (!mirror) {
      mirror = new Mirror(this.#deps);
      mirror.onDoubt((key) => {
        this.#doubts(key);
      });
      this.#mirrors.set(namespace, mirror);
    }
    return mirror;
  }

  of(key: string): Mirror<StoredPod> {
    return this.in(key.slice(0, key.indexOf('/')));
  }

  get doubted(): readonly string[] {
    return [...this.#mirrors.values()].flatMap((mirror) => mirror.doubted);
  }

  onDoubt(told: (key: string) => void): void {
    this.#doubts = told;
  }

  forget(namespace: string): void {
    const mirror = this.#mirrors.get(namespace);
    this.#mirrors.delete(namespace);
    for (const _ of mirror?.list({ afresh: true }).complete('') ?? []);
  }
}
