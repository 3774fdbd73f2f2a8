/**
 * Matches the modes that programs switch on in a terminal and must switch off again: cursor keys,
 * mouse, pasting, the other screen; and the cursor off.
 */
const TRACKED = /\x1b\[\?(1|25|47|1000|1002|1003|1004|1005|1006|1015|1047|1049|2004)([hl])/g;
const LONGEST = 8;

/**
 * Follows which modes the output leaves switched, so that they can be undone when its program can't
 * any more.
 */
export class TerminalModes {
  readonly #switched = new Map<string, 'h' | 'l'>();
  #tail = '';

  follow(chunk: Buffer): void {
    const text = this.#tail + chunk.toString('latin1');
    for (const [, mode = '', way] of text.matchAll(TRACKED)) {
      const usual = mode === '25' ? 'h' : 'l';
      if (way === usual) this.#switched.delete(mode);
      else this.#switched.set(mode, usual);
    }
    this.#tail = text.slice(-LONGEST);
  }

  /** The bytes that undo what is switched; none where nothing is. */
  undo(): string {
    return [...this.#switched].map(([mode, way]) => `\x1b[?${mode}${way}`).join('');
  }
}
