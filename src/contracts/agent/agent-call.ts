import { Readable, type Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import { FileRefused, type FileProblem } from '../files.ts';
import { NotJoinable, OutcomeUnknown } from '../sandbox-driver.ts';
import { Deferred } from '../../lib/deferred.ts';
import { ByteInflow } from '../../lib/streams/byte-queue.ts';
import { AgentFrames } from './agent-frames.ts';
import { strange } from './agent-stats.ts';

/** In ms, if the agent must act. */
const SILENCE_MS = 60_000;
const MOST_WAITING = 256 * 1024;

export interface AgentCallTerms {
  /** Written bytes reach the agent, and back-pressure (`drain`, `pause`) works. */
  readonly connection: Duplex;
  /** The command, then names and values alternately; without NUL. */
  readonly tokens: readonly (string | Buffer)[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /**
   * Returns the number of content bytes after the head; throws if it is malformed. Absent if
   * content comes in frames.
   */
  readonly rawBytes?: (head: Buffer) => number;
  /** Sent before the agent asks for it. */
  readonly body?: Buffer;
  /** The agent otherwise keeps its answer for a repeated question. */
  readonly acknowledges?: boolean;
  /** Defaults to the file errors. */
  readonly refused?: (word: string) => Error;
  /** Throws if the number of content bytes held is too large; absent if nobody counts. */
  readonly hold?: (bytes: number) => void;
}

/** Nothing was done. */
export class AgentAway extends Error {
  override readonly name = 'AgentAway';
}

/** Nothing was done. */
export class AgentSilent extends NotJoinable {}

/**
 * One request to a sandbox's agent or to the holder of a process; native/README.md describes the
 * protocol. The answers are not trusted: an agent runs among the sandbox's own processes.
 */
export class AgentCall {
  readonly content: Readable;
  readonly #inflow = new ByteInflow((bytes) => this.content.push(bytes), MOST_WAITING);
  readonly #socket: Duplex;
  readonly #terms: AgentCallTerms;
  readonly #frames: AgentFrames;
  readonly #head = new Deferred<Buffer>();
  readonly #answer = new Deferred<Buffer>();
  #callOff: () => void = () => {};
  #heardAt: number;
  #greeted = false;
  #headed = false;
  #over = false;
  #sending = false;
  #stopSending: ((error: unknown) => void) | undefined;

  constructor(terms: AgentCallTerms) {
    this.#terms = terms;
    this.#heardAt = terms.clock.now();
    this.#frames = new AgentFrames({
      greeted: (code) => this.#greet(code),
      frame: (type, payload) => this.#take(type, payload),
      data: (bytes) => {
        this.#inflow.add(bytes);
        if (this.#inflow.isFull) this.#socket.pause();
      },
      rawEnded: () => this.#succeed(Buffer.alloc(0)),
      malformed: () => this.#fail(strange()),
    });
    this.content = new Readable({
      highWaterMark: 1,
      read: () => {
        this.#heard();
        this.#inflow.want();
        if (!this.#inflow.isFull) this.#socket.resume();
      },
      destroy: (error, callback) => {
        this.#fail(new OutcomeUnknown('it is no longer read'));
        callback(error);
      },
    });
    // Reading it is optional; a reader sees the error in the stream's state.
    this.content.on('error', () => {});
    this.#socket = terms.connection
      .on('data', (chunk) => {
        this.#heard();
        this.#frames.feed(chunk);
      })
      .on('drain', () => this.#heard())
      .on('error', (error) => this.#broke(error))
      .once('close', () => this.#broke());
    this.#socket.write(requestOf(terms.tokens));
    if (terms.body) this.#socket.write(bodyOf(terms.body));
    terms.signal.addEventListener('abort', this.#abort, { once: true });
    this.#watch();
    if (terms.signal.aborted) this.#abort();
  }

  /**
   * Resolves once the agent has taken the request. Rejects with FileRefused, AgentAway,
   * AgentSilent, OutcomeUnknown or the signal's reason.
   */
  head(): Promise<Buffer> {
    return this.#head.promise;
  }

  answer(): Promise<Buffer> {
    return this.#answer.promise;
  }

  /** See `AgentCallTerms.hold`. */
  hold(bytes: number): void {
    this.#terms.hold?.(bytes);
  }

  send(content: Readable): Promise<void> {
    if (this.#over) return this.#answer.promise.then(() => {});
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        this.#sending = false;
        this.#stopSending = undefined;
        content.off('data', pass).off('end', end).off('error', fail).off('close', cut);
        this.#socket.off('drain', goOn);
      };
      const pass = (chunk: Buffer): void => {
        if (chunk.length === 0) return; // a length of 0 would mark the end
        this.#socket.cork();
        this.#socket.write(lengthOf(chunk.length));
        if (!this.#socket.write(chunk)) content.pause();
        this.#socket.uncork();
      };
      const goOn = (): void => void content.resume();
      const end = (): void => {
        stop();
        this.#heard();
        this.#socket.write(lengthOf(0));
        resolve();
      };
      const fail = (error: unknown): void => this.#fail(error);
      const cut = (): void => fail(new Error('the data to write was cut off'));
      this.#sending = true;
      this.#stopSending = (error) => {
        stop();
        content.pause();
        reject(error);
      };
      if (content.destroyed)
        return fail(content.errored ?? new Error('the operation was interrupted'));
      this.#socket.on('drain', goOn);
      content.on('data', pass).once('end', end).once('error', fail).once('close', cut);
    });
  }

  nudge(): void {
    if (!this.#over) this.#socket.write(NUL);
  }

  #greet(code: number): void {
    if (code !== 0) return this.#fail(this.#refusal(TOO_MANY));
    this.#greeted = true;
  }

  #take(type: 'H' | 'E' | 'X', payload: Buffer): void {
    if (type === 'X') return this.#fail(this.#refusal(payload));
    // Content with a length in its head ends with the last byte, and not before.
    if (type === 'E') return this.#terms.rawBytes ? this.#fail(strange()) : this.#succeed(payload);
    let rawBytes: number | undefined;
    try {
      rawBytes = this.#terms.rawBytes?.(payload);
    } catch (error) {
      return this.#fail(error);
    }
    this.#headed = true;
    this.#head.resolve(payload);
    if (rawBytes !== undefined) this.#frames.raw(rawBytes);
  }

  #refusal(payload: Buffer): Error {
    const { refused } = this.#terms;
    return refused ? refused(wordOf(payload)) : refusalOf(payload);
  }

  readonly #abort = (): void => this.#fail(this.#terms.signal.reason);

  #succeed(payload: Buffer): void {
    if (this.#over) return;
    if (this.#terms.acknowledges) this.#socket.write(NUL);
    this.#leave();
    this.#head.resolve(payload);
    this.#answer.resolve(payload);
    this.#stopSending?.(new OutcomeUnknown('the agent ended too early'));
    this.#inflow.end();
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#leave();
    this.#head.reject(error);
    this.#answer.reject(error);
    this.#stopSending?.(error);
    if (!this.#headed) this.content.destroy();
    else this.content.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  #leave(): void {
    this.#over = true;
    this.#frames.stop();
    this.#callOff();
    this.#terms.signal.removeEventListener('abort', this.#abort);
    this.#socket.destroy();
  }

  #broke(error?: NodeJS.ErrnoException): void {
    // Too many connections already wait for it.
    if (error?.code === 'EAGAIN') return this.#fail(this.#refusal(TOO_MANY));
    this.#fail(
      this.#greeted
        ? new OutcomeUnknown('the connection to the agent was lost', { cause: error })
        : new AgentAway('the agent is gone', { cause: error }),
    );
  }

  #heard(): void {
    this.#heardAt = this.#terms.clock.now();
  }

  get #owed(): boolean {
    return this.#sending ? this.#socket.writableNeedDrain : !this.#socket.isPaused();
  }

  #watch(): void {
    const { clock } = this.#terms;
    this.#callOff = clock.at(this.#heardAt + SILENCE_MS, () => {
      if (!this.#owed) this.#heard();
      if (clock.now() - this.#heardAt < SILENCE_MS) return this.#watch();
      const why = 'the sandbox does not answer: it is paused or hangs';
      this.#fail(this.#greeted ? new OutcomeUnknown(why) : new AgentSilent(why));
    });
  }
}

const TOO_MANY = Buffer.from('too-many');

const lengthOf = (bytes: number): Buffer => {
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(bytes);
  return length;
};

const bodyOf = (bytes: Buffer): Buffer =>
  Buffer.concat([...(bytes.length === 0 ? [] : [lengthOf(bytes.length), bytes]), lengthOf(0)]);

const NUL = Buffer.from([0]);

const requestOf = (tokens: readonly (string | Buffer)[]): Buffer => {
  const parts = tokens.map((token) => (typeof token === 'string' ? Buffer.from(token) : token));
  if (parts.some((part) => part.includes(0))) throw new Error('a request cannot contain a NUL');
  const request = Buffer.concat(parts.flatMap((part) => [part, NUL]));
  return Buffer.concat([lengthOf(request.length), request]);
};

const TOLD: Readonly<Partial<Record<FileProblem, string>>> = {
  'not-found': 'there is no such file or folder',
  exists: 'a file or folder of that name exists already',
  changed: 'it has changed, or does not have the requested version',
  'is-a-folder': 'it is a folder',
  'not-a-folder': 'the path is not a folder, or a part of it is not',
  'not-a-file': 'it is not a file or folder, but a device, a fifo or a socket',
  'not-empty': 'the folder is not empty',
  denied: "the sandbox's user does not have permission",
  'no-space': 'the sandbox has no space left',
  'cannot-move':
    'it cannot be moved there: the target is inside it, or it is a folder and the target is on ' +
    'another file system',
  busy: 'it is in use',
  'bad-path': 'the path is too long, or has too many links',
  'bad-range': 'the range begins after the end of the file',
  'bad-cursor': 'the cursor does not belong to this path',
  'bad-archive': 'the archive cannot be unpacked',
  'no-metadata':
    'files have no metadata there: the file system does not support extended attributes, ' +
    'like tmpfs before Linux 6.6; write the file without metadata',
  'too-many': 'too many file operations of this sandbox are in progress',
};

const UNPRINTABLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const MOST_DETAIL = 400;

const wordOf = (payload: Buffer): string => {
  const end = payload.indexOf(0);
  return payload.toString('latin1', 0, end < 0 ? payload.length : end);
};

/** A code, then a NUL and a detail. */
const refusalOf = (payload: Buffer): Error => {
  const end = payload.indexOf(0);
  const word = wordOf(payload);
  const detail = end < 0 ? '' : payload.toString('utf8', end + 1);
  const problem = word as FileProblem;
  const told = Object.hasOwn(TOLD, word) ? TOLD[problem] : undefined;
  if (told === undefined) return new NotJoinable('the file system of the sandbox failed');
  if (problem === 'bad-range' && /^\d{1,16}$/.test(detail))
    return new FileRefused(problem, told, Number(detail));
  const shown = detail.replaceAll(UNPRINTABLE, '\uFFFD').slice(0, MOST_DETAIL);
  return new FileRefused(problem, shown === '' ? told : shown);
};
