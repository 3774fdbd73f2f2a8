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

/** The output of exec.sh, parted into what the script says and what the command printed. */
export class ExecOutput {
  readonly #stdout: Kept;
  readonly #stderr: Kept;
  readonly #token: Buffer;
  #head = '';
  /** The end of what came to the errors, as far as it may be the beginning of the last line. */
  #tail = Buffer.alloc(0);
  /** The script's process. */
  pid: string | undefined;
  /** The command's exit code, once it has ended. */
  exitCode: number | undefined;

  /** `gathered` is told of each piece before it is kept; what it throws comes out of here. */
  constructor(token: string, limit: number, gathered: (bytes: Buffer) => void = () => {}) {
    this.#token = Buffer.from(token);
    this.#stdout = new Kept(limit, gathered);
    this.#stderr = new Kept(limit, gathered);
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
    if (this.exitCode !== undefined) return;
    const text = Buffer.concat([this.#tail, bytes]);
    const at = text.indexOf(this.#token);
    const end = at < 0 ? -1 : text.indexOf(NEWLINE, at);
    if (end >= 0) {
      this.exitCode = Number(text.toString('latin1', at + this.#token.length, end));
      this.#stderr.push(text.subarray(0, at));
      this.#tail = Buffer.alloc(0);
      return;
    }
    const sure = at >= 0 ? at : Math.max(text.length - this.#token.length - LONGEST_CODE, 0);
    this.#stderr.push(text.subarray(0, sure));
    this.#tail = Buffer.from(text.subarray(sure));
  }

  /** All that was printed. */
  taken(): { readonly stdout: Buffer; readonly stderr: Buffer; readonly truncated: boolean } {
    this.#stderr.keep(this.#tail); // a few bytes, and nobody is left to refuse them to
    this.#tail = Buffer.alloc(0);
    return {
      stdout: this.#stdout.bytes,
      stderr: this.#stderr.bytes,
      truncated: this.#stdout.truncated || this.#stderr.truncated,
    };
  }
}
