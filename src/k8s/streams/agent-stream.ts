import { Duplex } from 'node:stream';
import { NotJoinable, OutcomeUnknown } from '../../contracts/sandbox-driver.ts';
import { ByteInflow } from '../../lib/streams/byte-queue.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import {
  enterWhileLooking,
  isNodeSilent,
  NodeSilent,
  requireJoinable,
  type PodTarget,
} from '../sandboxes/pods/pod-presence.ts';
import { AGENT } from '../sandboxes/pods/pod-agent.ts';
import type { ChannelSocket } from './channel-socket.ts';
import { openCommand, STATUS, STDERR, STDIN, STDOUT, StatusReader } from './pod-command.ts';
import { NoAgent } from './no-agent.ts';
import type { GatheredAnswer } from './gathered-bytes.ts';
import type { PodLinks } from './pod-links.ts';

const BEGIN_MS = 20_000;
/** Higher codes are signals. */
const MOST_OF_PROGRAM = 128;
const LONGEST_ERRORS = 1 << 10;
const BUFFER = 256 << 10;
const CHUNK = 128 << 10;

/**
 * One call of the agent (native/README.md), with backpressure. Fails with OutcomeUnknown if the
 * connection is lost. The agent exits when its stream is destroyed.
 */
export class AgentStream extends Duplex {
  readonly #links: PodLinks;
  readonly #target: PodTarget;
  readonly #socket: ChannelSocket;
  readonly #gathered: GatheredAnswer;
  readonly #reader = new StatusReader();
  readonly #inflow = new ByteInflow((bytes) => this.push(bytes), BUFFER);
  readonly #late: NodeJS.Timeout;
  #isBegun = false;
  #isOver = false;
  #errors = '';

  private constructor(links: PodLinks, target: PodTarget, socket: ChannelSocket) {
    super({ readableHighWaterMark: 1, writableHighWaterMark: BUFFER });
    this.#links = links;
    this.#target = target;
    this.#socket = socket;
    this.#gathered = links.gathered.begin(target.namespace);
    this.#late = setTimeout(() => {
      this.destroy(new NotJoinable('the agent in the sandbox did not start in time'));
    }, BEGIN_MS);
    socket.listen({
      data: (channel, bytes) => {
        if (!this.#isOver) this.#heard(channel, bytes);
      },
      closed: (why) => {
        this.#cut(why);
      },
    });
  }

  /**
   * Rejects with InstanceGone, ContainerGone or NotJoinable; before the first byte, the stream
   * fails with one of these, or with NoAgent.
   */
  static async open(links: PodLinks, target: PodTarget): Promise<AgentStream> {
    const opening = openCommand(links, target, {
      argv: [AGENT, 'call'],
      stdin: true,
      tty: false,
    });
    const socket = await enterWhileLooking(links, target, opening);
    return new AgentStream(links, target, socket);
  }

  /** Throws NotJoinable if the answers of Pods occupy too much. */
  hold(bytes: number): void {
    this.#gathered.hold(bytes);
  }

  override _read(): void {
    this.#inflow.want();
    if (!this.#inflow.isFull) this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#send(chunk, done);
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    this.#send(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#isOver) this.#socket.end(STDIN);
    this.#over();
    this.#gathered.end();
    done(error);
  }

  #send(bytes: Buffer, done: () => void): void {
    for (let at = 0; at < bytes.length; at += CHUNK)
      this.#socket.send(
        STDIN,
        bytes.subarray(at, at + CHUNK),
        at + CHUNK < bytes.length ? undefined : done,
      );
    if (bytes.length === 0) done();
  }

  #heard(channel: number, bytes: Buffer): void {
    if (channel === STDOUT && bytes.length > 0) {
      this.#isBegun = true;
      clearTimeout(this.#late);
      this.#inflow.add(bytes);
      if (this.#inflow.isFull) this.#socket.pause();
    } else if (channel === STDERR)
      this.#errors = (this.#errors + bytes.toString('utf8')).slice(0, LONGEST_ERRORS);
    else if (channel === STATUS) {
      const status = this.#reader.push(bytes);
      if (!status) return;
      if ('failure' in status) this.#cut(status.failure);
      else if (this.#isBegun || status.exitCode > MOST_OF_PROGRAM)
        this.#cut(`the agent ended with ${status.exitCode}`);
      // Some runtimes return exit codes of their own if the program is missing.
      else this.#cut(`${AGENT} ended with ${status.exitCode}`);
    }
  }

  #cut(why: string): void {
    if (this.#isOver) return;
    this.#over();
    if (this.#isBegun) {
      const lost = new OutcomeUnknown(`the connection to the sandbox was lost: ${cleaned(why)}`);
      this.once('end', () => this.destroy(lost));
      this.#inflow.end();
      return;
    }
    void this.#notBegun(`${why} ${this.#errors}`).then((error) => {
      this.destroy(error);
    });
  }

  async #notBegun(why: string): Promise<Error> {
    if (why.includes(AGENT)) return new NoAgent();
    if (isNodeSilent(why)) {
      this.#links.silent(this.#target);
      return new NodeSilent({ cause: new Error(why) });
    }
    return await requireJoinable(this.#links.api, this.#target).then(
      () => new NotJoinable(`nothing could be run in the sandbox: ${cleaned(why)}`),
      (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
    );
  }

  #over(): void {
    clearTimeout(this.#late);
    this.#isOver = true;
    this.#socket.close();
  }
}
