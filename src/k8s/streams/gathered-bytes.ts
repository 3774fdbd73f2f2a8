import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import { ByteShares, type ByteBounds } from '../../lib/byte-shares.ts';

/** Per namespace, which is one team's, and in total. */
const MOST_OF_NAMESPACE_MIB = 64;
const MOST_MIB = 192;
const BOUNDS: ByteBounds = {
  tenantBytes: MOST_OF_NAMESPACE_MIB << 20,
  totalBytes: MOST_MIB << 20,
};

/** Tenants' processes may send maximum answers to many concurrent callers. */
export class GatheredBytes {
  readonly #shares: ByteShares;

  constructor(bounds = BOUNDS) {
    this.#shares = new ByteShares(bounds);
  }

  begin(namespace: string): GatheredAnswer {
    return new GatheredAnswer((bytes) => {
      this.#shares.add(namespace, bytes);
      if (bytes <= 0 || this.#shares.over(namespace) === undefined) return;
      this.#shares.add(namespace, -bytes);
      throw new NotJoinable('the answers of sandboxes use all the memory for them; try again');
    });
  }
}

export class GatheredAnswer {
  readonly #add: (bytes: number) => void;
  #held = 0;
  #isOver = false;

  constructor(add: (bytes: number) => void) {
    this.#add = add;
  }

  /** No effect after `end`. Throws NotJoinable beyond the limits. */
  hold(bytes: number): void {
    if (this.#isOver) return;
    this.#add(bytes - this.#held);
    this.#held = bytes;
  }

  end(): void {
    this.hold(0);
    this.#isOver = true;
  }
}
