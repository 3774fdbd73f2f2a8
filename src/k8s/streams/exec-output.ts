import { NotJoinable } from '../../contracts/sandbox-driver.ts';

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
const CODE = /^\d{1,3}\n/;
const LONGEST_CODE = 4;
/** Exceeds the digits of a process id. */
const LONGEST_HEAD = 32;

/**
 * An output stream with an end marker in it. A token without an exit code after it is the command's
 * own output.
 */
class Marked {
  readonly kept: Kept;
  readonly #token: Buffer;
  #tail = Buffer.alloc(0);
  exitCode: number | undefined;

  constructor(token: Buffer, kept: Kept) {
    this.#token = token;
    this.kept = kept;
  }

  push(bytes: Buffer): void {
    if (this.exitCode !== undefined) return this.kept.push(bytes);
    const text = Buffer.concat([this.#tail, bytes]);
    let at = text.indexOf(this.#token);
    for (; at >= 0; at = text.indexOf(this.#token, at + 1)) {
      const from = at + this.#token.length;
      const behind = text.toString('latin1', from, from + LONGEST_CODE);
      const code = CODE.exec(behind)?.[0];
      if (code !== undefined) {
        this.exitCode = Number(code);
        this.#tail = Buffer.alloc(0);
        this.kept.push(text.subarray(0, at));
        this.kept.push(text.subarray(from + code.length));
        return;
      }
      if (behind.length < LONGEST_CODE && /^\d*$/.test(behind)) break; // the code is incomplete
    }
    const sure = at >= 0 ? at : Math.max(text.length - this.#token.length + 1, 0);
    this.kept.push(text.subarray(0, sure));
    this.#tail = Buffer.from(text.subarray(sure));
  }

  /** Stores the remaining bytes without counting them: they are few, and the command has ended. */
  end(): void {
    this.kept.keep(this.#tail);
    this.#tail = Buffer.alloc(0);
  }
}

export class ExecOutput {
  readonly #stdout: Marked;
  readonly #stderr: Marked;
  #head = '';
  pid: string | undefined;

  constructor(token: string, limit: number, gathered: (bytes: Buffer) => void = () => {}) {
    const mark = Buffer.from(token);
    this.#stdout = new Marked(mark, new Kept(limit, gathered));
    this.#stderr = new Marked(mark, new Kept(limit, gathered));
  }

  get exitCode(): number | undefined {
    return this.#stderr.exitCode ?? this.#stdout.exitCode;
  }

  get isWhole(): boolean {
    return this.#stdout.exitCode !== undefined && this.#stderr.exitCode !== undefined;
  }

  stdout(bytes: Buffer): void {
    if (this.pid !== undefined) return this.#stdout.push(bytes);
    const end = bytes.indexOf(NEWLINE);
    this.#head += bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
    if (this.#head.length > LONGEST_HEAD)
      throw new NotJoinable('the agent in the sandbox sent an invalid answer');
    if (end < 0) return;
    if (!PID.test(this.#head))
      throw new NotJoinable('the agent in the sandbox sent an invalid answer');
    this.pid = this.#head;
    this.#stdout.push(bytes.subarray(end + 1));
  }

  stderr(bytes: Buffer): void {
    this.#stderr.push(bytes);
  }

  /** `truncated`: beyond the limit, or its end was lost. */
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

/** Ids go into URLs and logs. */
export const PID = /^\d{1,10}$/;
