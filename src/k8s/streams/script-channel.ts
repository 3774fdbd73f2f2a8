import { Readable } from 'node:stream';
import { NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import {
  enterWhileLooking,
  isNodeSilent,
  NodeSilent,
  requireJoinable,
  type PodTarget,
} from '../sandboxes/pods/pod-presence.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { endTree } from './end-tree.ts';
import { openCommand, STATUS, STDERR, STDIN, STDOUT, StatusReader } from './pod-command.ts';
import type { GatheredAnswer } from './gathered-bytes.ts';
import type { PodLinks } from './pod-links.ts';
import { scriptCommand, type PodScript } from './pod-script.ts';
import { Deferred } from '../../lib/deferred.ts';

/** The container has no /bin/sh, without which nothing of ours can be run in it. */
export class NoShell extends Error {
  override readonly name = 'NoShell';

  constructor(container: string) {
    super(`the container "${container}" has no /bin/sh, which this needs`);
  }
}

/** Longest that a script takes to begin. */
const BEGIN_MS = 20_000;
const NEWLINE = 10;
const LONGEST_PID = 32;
const LONGEST_ERRORS = 4 << 10;
/** Bytes of input in one frame. */
const CHUNK = 32 << 10;

/**
 * A script of ours that runs in a container, its input and its output, with back-pressure both
 * ways. The output fails with OutcomeUnknown where the way is lost before the script has ended,
 * once what had come was read, and with what `open` rejects with where it never began.
 */
export class ScriptChannel {
  /** Read once. */
  readonly output: AsyncIterable<Buffer>;
  readonly #output: Readable;
  readonly #links: PodLinks;
  readonly #target: PodTarget;
  readonly #socket: ChannelSocket;
  readonly #gathered: GatheredAnswer;
  readonly #reader = new StatusReader();
  readonly #begun = new Deferred<void>();
  #sending = Promise.resolve();
  #head = '';
  #pid: string | undefined;
  #errors = '';
  #isOver = false;
  #exitCode: number | undefined;
  /** How the way was lost. */
  #lost: OutcomeUnknown | undefined;

  private constructor(links: PodLinks, target: PodTarget, socket: ChannelSocket) {
    this.#links = links;
    this.#target = target;
    this.#socket = socket;
    this.#gathered = links.gathered.begin(target.namespace);
    this.#output = new Readable({
      highWaterMark: 64 << 10,
      read: () => {
        socket.resume();
      },
      destroy: (error, done) => {
        this.#leave();
        done(error);
      },
    });
    this.#output.on('error', () => undefined); // whoever reads is told, and it may be nobody
    this.output = this.#read();
  }

  /**
   * Begins the script, with the first of its input. Rejects with NoShell, InstanceGone,
   * ContainerGone or NotJoinable: then nothing was done.
   */
  static async open(
    links: PodLinks,
    target: PodTarget,
    script: PodScript,
    input: Buffer,
  ): Promise<ScriptChannel> {
    const opening = openCommand(links, target, scriptCommand());
    const socket = await enterWhileLooking(links, target, opening);
    const channel = new ScriptChannel(links, target, socket);
    await channel.#begin(Buffer.concat([script, input]));
    return channel;
  }

  /** Its exit code, once the output has ended. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Returns what it said of its troubles, for the daemon's own log. */
  get errors(): string {
    return this.#errors;
  }

  /** Resolves once the bytes were handed to the kernel, or never will be. */
  write(bytes: Buffer): Promise<void> {
    this.#sending = this.#sending.then(() => this.#send(bytes));
    return this.#sending;
  }

  /**
   * Counts so many bytes as held of its output, in place of those before, until it is closed.
   * Throws NotJoinable where the answers of Pods take too much.
   */
  hold(bytes: number): void {
    this.#gathered.hold(bytes);
  }

  /** Nothing more comes: the script reads the end of its input. */
  endInput(): void {
    void this.#sending.then(() => {
      if (!this.#isOver) this.#socket.end(STDIN);
    });
  }

  /**
   * Leaves it: a script that goes by its input ends by itself. Where it must not go on, `kill` has
   * it ended, in the background.
   */
  close({ kill = false }: { readonly kill?: boolean } = {}): void {
    const goesOn = !this.#isOver;
    this.#gathered.end();
    this.#output.destroy();
    if (kill && goesOn && this.#pid !== undefined)
      this.#links.background(
        endTree(this.#links, this.#target, { pid: this.#pid, signal: 'KILL' }),
      );
  }

  async #begin(input: Buffer): Promise<void> {
    this.#socket.listen({
      data: (channel, bytes) => {
        this.#heard(channel, bytes);
      },
      closed: (why) => {
        this.#cut(why);
      },
    });
    const timer = setTimeout(() => {
      this.#fail(new NotJoinable('nothing could be begun in the sandbox in time'));
    }, BEGIN_MS);
    try {
      await this.#begun.promise;
    } finally {
      clearTimeout(timer);
    }
    void this.write(input);
  }

  async *#read(): AsyncGenerator<Buffer, void, undefined> {
    yield* this.#output as AsyncIterable<Buffer>;
    if (this.#lost) throw this.#lost;
  }

  async #send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#isOver; at += CHUNK)
      await new Promise<void>((sent) => {
        this.#socket.send(STDIN, bytes.subarray(at, at + CHUNK), sent);
      });
  }

  #heard(channel: number, bytes: Buffer): void {
    if (this.#isOver) return;
    if (channel === STDOUT) this.#print(bytes);
    else if (channel === STDERR)
      this.#errors = (this.#errors + bytes.toString('utf8')).slice(0, LONGEST_ERRORS);
    else if (channel === STATUS) {
      const status = this.#reader.push(bytes);
      if (!status) return;
      if ('failure' in status) this.#cut(status.failure);
      else this.#ended(status.exitCode);
    }
  }

  #print(bytes: Buffer): void {
    let rest = bytes;
    if (this.#pid === undefined) {
      const end = bytes.indexOf(NEWLINE);
      this.#head += bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
      if (end < 0 && this.#head.length < LONGEST_PID) return;
      if (!/^\d{1,10}$/.test(this.#head))
        return this.#fail(new NotJoinable('what answers in the sandbox is no shell'));
      this.#pid = this.#head;
      this.#begun.resolve();
      rest = bytes.subarray(end + 1);
    }
    if (rest.length > 0 && !this.#output.push(rest)) this.#socket.pause();
  }

  #ended(exitCode: number): void {
    // Some runtimes answer exit codes of their own where there is no such program.
    if (this.#pid === undefined) return this.#fail(new NoShell(this.#target.container));
    this.#exitCode = exitCode;
    this.#over();
    this.#output.push(null);
  }

  #cut(why: string): void {
    if (this.#isOver) return;
    if (this.#pid !== undefined) {
      this.#lost = new OutcomeUnknown(`the way into the sandbox was lost: ${cleaned(why)}`);
      this.#over();
      this.#output.push(null);
      return;
    }
    if (why.includes('/bin/sh')) return this.#fail(new NoShell(this.#target.container));
    if (isNodeSilent(why)) {
      this.#links.silent(this.#target);
      return this.#fail(new NodeSilent({ cause: new Error(why) }));
    }
    this.#over();
    requireJoinable(this.#links.api, this.#target).then(
      () => {
        this.#fail(new NotJoinable(`nothing could be run in the sandbox: ${cleaned(why)}`));
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  #fail(error: unknown): void {
    this.#over();
    this.#begun.reject(error);
    this.#output.destroy(error instanceof Error ? error : new Error(String(error)));
  }

  #over(): void {
    this.#isOver = true;
    this.#socket.close();
  }

  #leave(): void {
    if (this.#isOver) return;
    this.#socket.end(STDIN);
    this.#over();
  }
}
