import type { Socket } from 'node:net';
import { COULD_NOT_JOIN, Execution, type ExecutionOutcome } from './execution.ts';
import { NothingThere, type Agents } from './agents/agents.ts';
import {
  encodeHeader,
  encodeMessage,
  FRAME_KINDS,
  FrameReader,
  type Frame,
  type FrameKind,
} from './frames.ts';
import type { Instances } from './sandbox/instances.ts';
import type { LauncherPool } from './launcher-pool.ts';
import { isEnding } from './sandbox/process-identity.ts';
import type { Holders } from './processes/holders.ts';
import { StartRefused } from './processes/process-messages.ts';
import {
  handle,
  PROTOCOL,
  type DaemonMessage,
  type Handlers,
  type SocketOrder,
  type SpawnerMessage,
} from './protocol.ts';
import type { Readiness } from './probes/readiness.ts';
import { publicMessage } from './public-message.ts';

export interface SessionDeps {
  readonly daemon: DaemonListener;
  readonly instances: Instances;
  readonly forwarders: Agents;
  readonly fileAgents: Agents;
  readonly readiness: Readiness;
  readonly launchers: LauncherPool;
  readonly holders: Holders;
  readonly launcherPath: () => string;
}

export interface DaemonListener {
  /** Resolves after former instances are adopted. Throws if the configuration can't be used. */
  readonly accept: (
    session: Session,
    hello: Extract<DaemonMessage, { type: 'hello' }>,
  ) => Promise<SpawnerMessage>;
  readonly leave: () => void;
  readonly refused: () => void;
  readonly ended: (session: Session) => void;
}

/** Bounds memory. */
const CHANNEL_LIMIT = 4_096;

/** Before its hello is accepted. */
const BEFORE_HELLO: ReadonlySet<string> = new Set(['leave', 'hello']);

/** Commands end with their daemon's connection. */
export class Session {
  readonly #socket: Socket;
  readonly #deps: SessionDeps;
  readonly #reader = new FrameReader();
  readonly #executions = new Map<number, Execution>();
  readonly #handlers: Handlers<DaemonMessage> = {
    leave: () => this.#deps.daemon.leave(),
    hello: (hello) => void this.#greet(hello),
    beat: () => this.send({ type: 'alive' }),
    list: ({ request }) =>
      this.send({ type: 'listed', request, instances: this.#deps.instances.list() }),
    start: (order) => void this.#start(order),
    kill: ({ id }) => void this.#deps.instances.kill(id),
    forward: (order) => void this.#lead(order, this.#deps.forwarders),
    files: (order) => void this.#lead(order, this.#deps.fileAgents),
    probe: (order) => void this.#probe(order),
    freeze: (order) => void this.#freeze(order),
    exec: (order) => this.#exec(order),
    hold: (order) => void this.#hold(order),
    close: ({ channel }) => this.#executions.get(channel)?.close(),
  };
  #accepted = false;
  #over = false;

  constructor(socket: Socket, deps: SessionDeps) {
    this.#socket = socket;
    this.#deps = deps;
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('drain', () => this.#drained());
    socket.on('error', () => this.close());
    socket.once('close', () => this.close());
  }

  send(message: SpawnerMessage): void {
    if (!this.#over) this.#socket.write(encodeMessage(message));
  }

  close(): void {
    if (this.#over) return;
    this.#over = true;
    for (const execution of [...this.#executions.values()]) execution.close();
    this.#executions.clear();
    this.#socket.destroySoon();
    this.#deps.daemon.ended(this);
  }

  #read(chunk: Buffer): void {
    try {
      for (const frame of this.#reader.feed(chunk)) this.#take(frame);
    } catch (error) {
      this.send({
        type: 'log',
        level: 'error',
        event: 'daemon-message-not-read',
        fields: { error: String(error) },
      });
      this.close();
    }
  }

  #take(frame: Frame): void {
    if (this.#over) return;
    if (frame.kind === FRAME_KINDS.message)
      this.#obey(JSON.parse(String(frame.payload)) as DaemonMessage);
  }

  #obey(message: DaemonMessage): void {
    if (!this.#accepted && !BEFORE_HELLO.has(message.type))
      throw new Error(`${message.type} before hello`);
    handle(this.#handlers, message.type, message);
  }

  async #greet(hello: Extract<DaemonMessage, { type: 'hello' }>): Promise<void> {
    try {
      const answer = await this.#deps.daemon.accept(this, hello);
      this.#accepted = hello.protocol === PROTOCOL;
      this.send(answer);
    } catch (error) {
      this.#socket.once('close', this.#deps.daemon.refused);
      this.send({ type: 'unusable', reason: reasonOf(error) });
      this.close();
    }
  }

  async #start(message: Extract<DaemonMessage, { type: 'start' }>): Promise<void> {
    const taken = await this.#deps.instances.start(message.id, message);
    this.send({ type: 'started', request: message.request, outcome: taken ? 'under-way' : 'full' });
  }

  async #lead({ request, id, stale }: SocketOrder, agents: Agents): Promise<void> {
    try {
      this.send({ type: 'forwarded', request, socket: await agents.socketOf(id, stale) });
    } catch (error) {
      this.send({
        type: 'unreachable',
        request,
        gone: error instanceof NothingThere,
        reason: publicMessage(error),
      });
    }
  }

  async #hold({ request, id, order }: Extract<DaemonMessage, { type: 'hold' }>): Promise<void> {
    try {
      await this.#deps.holders.start(id, order);
      this.send({ type: 'held', request });
    } catch (error) {
      const refusal =
        error instanceof StartRefused
          ? error.refusal
          : { kind: 'not-joinable' as const, message: publicMessage(error) };
      this.send({ type: 'held', request, refusal });
    }
  }

  async #probe({ request, id }: Extract<DaemonMessage, { type: 'probe' }>): Promise<void> {
    if (!this.#deps.instances.placeOf(id))
      return this.send({
        type: 'unreachable',
        request,
        gone: true,
        reason: 'the sandbox is not running',
      });
    this.send({ type: 'probed', request, reports: await this.#deps.readiness.check(id) });
  }

  async #freeze({
    request,
    id,
    frozen,
  }: Extract<DaemonMessage, { type: 'freeze' }>): Promise<void> {
    try {
      const isThere = await this.#deps.instances.freeze(id, frozen);
      this.send(
        isThere
          ? { type: 'frozen', request }
          : { type: 'unreachable', request, gone: true, reason: 'the sandbox is not running' },
      );
    } catch (error) {
      this.send({ type: 'unreachable', request, gone: false, reason: publicMessage(error) });
    }
  }

  #exec(message: Extract<DaemonMessage, { type: 'exec' }>): void {
    const { channel, id } = message;
    const place = this.#deps.instances.placeOf(id);
    if (!place) return this.#refuse(channel, true, 'the sandbox is not running');
    if (this.#full()) return this.#refuse(channel, false, 'too many commands are running');
    const events = {
      output: (kind: FrameKind, bytes: Buffer) => this.#output(kind, channel, bytes),
      exited: (outcome: ExecutionOutcome) => {
        this.#executions.delete(channel);
        const gone =
          outcome.exitCode === COULD_NOT_JOIN &&
          (!this.#deps.instances.placeOf(id) || isEnding(place.init));
        if (gone) this.#refuse(channel, true, 'the sandbox ended');
        else this.send({ type: 'exited', channel, ...outcome });
      },
      failed: (reason: string) => {
        this.#executions.delete(channel);
        this.#refuse(channel, false, reason);
      },
    };
    try {
      this.#executions.set(
        channel,
        new Execution(this.#deps.launchers, { place, order: message }, events),
      );
    } catch (error) {
      this.#refuse(channel, false, publicMessage(error));
    }
  }

  #full(): boolean {
    return this.#executions.size >= CHANNEL_LIMIT;
  }

  #refuse(channel: number, gone: boolean, reason: string): void {
    this.send({ type: 'refused', channel, gone, reason });
  }

  #output(kind: FrameKind, channel: number, bytes: Buffer): boolean {
    if (this.#over) return true;
    // The bytes never change afterwards, so they need no copy.
    this.#socket.cork();
    this.#socket.write(encodeHeader(kind, channel, bytes.length));
    const hasRoom = this.#socket.write(bytes);
    process.nextTick(() => this.#socket.uncork());
    return hasRoom;
  }

  #drained(): void {
    for (const execution of [...this.#executions.values()]) execution.resume();
  }
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
