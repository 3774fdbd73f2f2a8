import {
  LogsGone,
  type LogBatch,
  type LogLine,
  type LogRequest,
  type LogTail,
} from '../../../src/contracts/sandbox-driver.ts';

/**
 * Output of simulated instances. A place is the number of lines before it; a text without a line
 * end is a partial line.
 */
export class MemoryLogs {
  readonly #lines = new Map<string, LogLine[]>();
  readonly #gone = new Set<string>();
  readonly #waiting = new Set<() => void>();

  print(id: string, text: string, time = '2026-01-31T12:00:00.000000000Z'): void {
    const lines = this.#lines.get(id) ?? [];
    this.#lines.set(id, lines);
    const parts = text.split('\n');
    const rest = parts.pop() ?? '';
    for (const part of parts)
      lines.push({ time, text: Buffer.from(part), partial: false, next: String(lines.length + 1) });
    if (rest !== '')
      lines.push({ time, text: Buffer.from(rest), partial: true, next: String(lines.length + 1) });
    this.changed();
  }

  /** Removed to make room. */
  lose(id: string): void {
    this.#gone.add(id);
  }

  /** Followers read again. */
  changed(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  tail(id: string, { tailLines, since = 0, limitBytes }: LogRequest): LogTail {
    const all = this.#of(id);
    const wanted = all.filter(({ time }) => Date.parse(time) >= since);
    let bytes = 0;
    const lines = wanted
      .slice(-tailLines)
      .toReversed()
      .filter(({ text }) => (bytes += text.length + 1) <= limitBytes)
      .toReversed();
    return { lines, truncated: lines.length < wanted.length, next: String(all.length) };
  }

  async *follow(
    id: string,
    after: string,
    { signal, ended }: { readonly signal: AbortSignal; readonly ended: () => boolean },
  ): AsyncGenerator<LogBatch, void, undefined> {
    let at = Number(after);
    if (!Number.isInteger(at) || at > this.#of(id).length) {
      at = 0;
      yield { lines: [], skipped: true };
    }
    while (!signal.aborted) {
      const over = ended();
      const lines = this.#of(id).slice(at);
      at += lines.length;
      if (lines.length > 0) yield { lines, skipped: false };
      if (over) return;
      if (lines.length === 0) await this.#change(signal);
    }
  }

  #of(id: string): readonly LogLine[] {
    if (this.#gone.has(id)) throw new LogsGone('told to be gone');
    return this.#lines.get(id) ?? [];
  }

  async #change(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }
}
