import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from '../../lib/content-hash.ts';
import type { Place, ResourceObject } from './resource.ts';

export interface SealedContent {
  readonly seal?: string;
}

/**
 * `bound`: a daemon wrote the content for this very object. `unbound`: for a new object of this
 * name, before it had a uid. `forged`: no daemon of this installation wrote it for this object.
 */
export type SealVerdict = 'bound' | 'unbound' | 'forged';

export interface SealsDeps {
  readonly key: Buffer;
}

/**
 * Seals content of objects that others may write too: the HMAC-SHA-256 of kind, namespace, name,
 * uid and content. Detects content that was copied to another object, or to a recreated one, but
 * not an earlier content of the same object.
 */
export class Seals {
  readonly #deps: SealsDeps;

  constructor(deps: SealsDeps) {
    this.#deps = deps;
  }

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
   * Later versions must keep this form: earlier versions recognise by it the objects that they must
   * not touch.
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
