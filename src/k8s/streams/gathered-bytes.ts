import { NotJoinable } from '../../contracts/sandbox-driver.ts';
import { ByteShares, type ByteBounds } from '../../lib/byte-shares.ts';

/** Bounds what Pods answer that waits here until the rest has come; a namespace is a team's. */
const MOST_OF_NAMESPACE_MIB = 64;
const MOST_MIB = 192;
const BOUNDS: ByteBounds = {
  tenantBytes: MOST_OF_NAMESPACE_MIB << 20,
  totalBytes: MOST_MIB << 20,
};

/**
 * Counts what is gathered of the answers of Pods: what runs in them may answer as much as each
 * answer may have, to as many as ask at once.
 */
export class GatheredBytes {
  readonly #shares: ByteShares;

  constructor(bounds = BOUNDS) {
    this.#shares = new ByteShares(bounds);
  }

  /** Begins an answer from a Pod of the namespace, of which nothing is counted yet. */
  begin(namespace: string): GatheredAnswer {
    return new GatheredAnswer((bytes) => {
      this.#shares.add(namespace, bytes);
      if (bytes <= 0 || this.#shares.over(namespace) === undefined) return;
      this.#shares.add(namespace, -bytes);
      throw new NotJoinable('answers of sandboxes take as much memory as they may; try again');
    });
  }
}

/** Counts one answer. */
export class GatheredAnswer {
  readonly #add: (bytes: number) => void;
  #held = 0;
  #isOver = false;

  constructor(add: (bytes: number) => void) {
    this.#add = add;
  }

  /** From now on so many bytes; none once it is over. Throws NotJoinable where they do not fit. */
  hold(bytes: number): void {
    if (this.#isOver) return;
    this.#add(bytes - this.#held);
    this.#held = bytes;
  }

  /** May be repeated. */
  end(): void {
    this.hold(0);
    this.#isOver = true;
  }
}
