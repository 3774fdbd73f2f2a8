import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../lib/content-hash.ts';
import type { Place, ResourceObject } from './resource.ts';

/** All that daemons say on an object for themselves; the seal itself apart. */
export interface SealedContent {
  readonly seal?: string;
}

/**
 * Describes what a seal says of the object that it stands on.
 * - `bound`: a daemon wrote the content for this very object.
 * - `unbound`: a daemon wrote it for an object of this name that was still to be made, and had no
 *   uid.
 * - `forged`: a daemon of this installation wrote no such content for this object.
 */
export type SealVerdict = 'bound' | 'unbound' | 'forged';

export interface SealsDeps {
  /** Derived from the pepper, for seals alone. */
  readonly key: Buffer;
}

/**
 * Seals what daemons write on objects that others may write too, so that it is not believed because
 * it stands there.
 *
 * A seal is the HMAC-SHA-256 of the kind, the object's namespace, name and uid, and the whole
 * content. So content that was copied to another object, or to one that was made anew under the
 * name, is told from a daemon's own. What a seal can't tell is an earlier content of the same
 * object that somebody put back: it was a daemon's own.
 */
export class Seals {
  readonly #deps: SealsDeps;

  constructor(deps: SealsDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the content with its seal. `uid`: the object's, once it has one.
   */
  sealed<T extends SealedContent>(
    kind: string,
    { namespace = '', name }: Place,
    { uid = '', content }: { readonly uid?: string; readonly content: T },
  ): T {
    const { seal: _before, ...rest } = content;
    return {
      ...(rest as T),
      seal: this.#macOf([kind, namespace, name, uid], rest).toString('base64url'),
    };
  }

  judge({ kind, metadata }: ResourceObject, { seal, ...content }: SealedContent): SealVerdict {
    if (seal === undefined) return 'forged';
    const given = Buffer.from(seal, 'base64url');
    const fits = (uid: string): boolean => {
      const expected = this.#macOf([kind, metadata.namespace ?? '', metadata.name, uid], content);
      return expected.length === given.length && timingSafeEqual(expected, given);
    };
    if (fits(metadata.uid)) return 'bound';
    return fits('') ? 'unbound' : 'forged';
  }

  /**
   * A later version must keep this form: by it an earlier one knows what is not its own to touch.
   */
  #macOf(
    of: readonly [kind: string, namespace: string, name: string, uid: string],
    content: object,
  ): Buffer {
    return createHmac('sha256', this.#deps.key)
      .update(canonicalJson(['sandpool seal 1', ...of, content]))
      .digest();
  }
}
