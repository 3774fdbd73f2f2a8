/**
 * Bounds what the bodies that are still arriving hold together. Past `mostBytes` the oldest are
 * refused: a client that sends slowly on many connections gives way to those that send at once.
 */
export class ArrivingBodies {
  readonly #mostBytes: number;
  /** The oldest first. */
  readonly #held = new Map<Arriving, number>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** So many bytes more of this body wait for the rest. */
  hold(body: Arriving, bytes: number): void {
    this.#held.set(body, (this.#held.get(body) ?? 0) + bytes);
    this.#bytes += bytes;
    for (const [oldest] of this.#held) {
      if (this.#bytes <= this.#mostBytes) break;
      this.letGo(oldest);
      oldest.refuse();
    }
  }

  /** It is whole, or over. May be repeated. */
  letGo(body: Arriving): void {
    this.#bytes -= this.#held.get(body) ?? 0;
    this.#held.delete(body);
  }
}

interface Arriving {
  readonly refuse: () => void;
}
