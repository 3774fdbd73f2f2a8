/** The end of what a process prints, of about so many characters at most. */
export class KeptOutput {
  readonly #most: number;
  #chunks: string[] = [];
  #size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get text(): string {
    return this.#chunks.join('').slice(-this.#most);
  }

  add(chunk: string): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    // Seldom, and then half of it at once: a busy process prints thousands of small chunks.
    if (this.#size > 2 * this.#most) {
      const kept = this.text;
      [this.#chunks, this.#size] = [[kept], kept.length];
    }
  }
}
