/** The first `limit` bytes of a stream, which may come one by one. */
class Kept {
  readonly #limit: number;
  readonly #gathered: (bytes: Buffer) => void;
  #buffer = Buffer.alloc(0);
  #length = 0;
  truncated = false;

  constructor(limit: number, gathered: (bytes: Buffer) => void) {
    this.#limit = limit;
    this.#gathered = gathered;
  }

  push(bytes: Buffer): void {
    const wanted = bytes.subarray(0, this.#limit - this.#length);
    if (wanted.length > 0) this.#gathered(wanted);
    this.keep(bytes);
  }

  keep(bytes: Buffer): void {
    const wanted = bytes.subarray(0, this.#limit - this.#length);
    if (wanted.length < bytes.length) this.truncated = true;
    if (this.#length + wanted.length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(
        Math.min(this.#limit, Math.max(FIRST_BLOCK, 2 * (this.#length + wanted.length))),
      );
      this.#buffer.copy(larger, 0, 0, this.#length);
      this.#buffer = larger;
    }
    wanted.copy(this.#buffer, this.#length);
    this.#length += wanted.length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }
}

const FIRST_BLOCK = 1_024;
const NEWLINE = 10;
/** An exit code and its line end. */
const LONGEST_CODE = 8;

/** A stream of exec.sh: what the command printed, and where its end was told between. */
class Marked {
  readonly kept: Kept;
  readonly #token: Buffer;
  /** The last that came, as far as it may be the beginning of the token and the exit code. */
  #tail = Buffer.alloc(0);
  /** The command's exit code, once this stream told it. */
  exitCode: number | undefined;

  constructor(token: Buffer, kept: Kept) {
    this.#token = token;
    this.kept = kept;
  }

  push(bytes: Buffer): void {
    if (this.exitCode !== undefined) return this.kept.push(bytes);
    const text = Buffer.concat([this.#tail, bytes]);
    const at = text.indexOf(this.#token);
    const end = at < 0 ? -1 : text.indexOf(NEWLINE, at);
    if (end >= 0) {
      this.exitCode = Number(text.toString('latin1', at + this.#token.length, end));
      this.#tail = Buffer.alloc(0);
      this.kept.push(text.subarray(0, at));
      this.kept.push(text.subarray(end + 1));
      return;
    }
    const sure = at >= 0 ? at : Math.max(text.length - this.#token.length - LONGEST_CODE, 0);
    this.kept.push(text.subarray(0, sure));
    this.#tail = Buffer.from(text.subarray(sure));
  }

  /** Keeps the last bytes: a few, which nobody is left to refuse. */
  end(): void {
    this.kept.keep(this.#tail);
    this.#tail = Buffer.alloc(0);
  }
}

/** The output of exec.sh, parted into what the script says and what the command printed. */
export class ExecOutput {
  readonly #stdout: Marked;
  readonly #stderr: Marked;
  #head = '';
  /** The script's process. */
  pid: string | undefined;

  /** `gathered` is told of each piece before it is kept; what it throws comes out of here. */
  constructor(token: string, limit: number, gathered: (bytes: Buffer) => void = () => {}) {
    const mark = Buffer.from(token);
    this.#stdout = new Marked(mark, new Kept(limit, gathered));
    this.#stderr = new Marked(mark, new Kept(limit, gathered));
  }

  /** The command's exit code, once it has ended. */
  get exitCode(): number | undefined {
    return this.#stderr.exitCode;
  }

  /** Whether all has come that it printed before its end. */
  get isWhole(): boolean {
    return this.#stdout.exitCode !== undefined && this.#stderr.exitCode !== undefined;
  }

  stdout(bytes: Buffer): void {
    if (this.pid !== undefined) return this.#stdout.push(bytes);
    const end = bytes.indexOf(NEWLINE);
    this.#head += bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
    if (end < 0) return;
    this.pid = this.#head;
    this.#stdout.push(bytes.subarray(end + 1));
  }

  stderr(bytes: Buffer): void {
    this.#stderr.push(bytes);
  }

  /** All that was printed, and whether it is less: beyond the limit, or since its end was lost. */
  taken(): { readonly stdout: Buffer; readonly stderr: Buffer; readonly truncated: boolean } {
    this.#stdout.end();
    this.#stderr.end();
    const isCut = this.exitCode !== undefined && !this.isWhole;
    return {
      stdout: this.#stdout.kept.bytes,
      stderr: this.#stderr.kept.bytes,
      truncated: this.#stdout.kept.truncated || this.#stderr.kept.truncated || isCut,
    };
  }
}
