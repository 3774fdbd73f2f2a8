import type { Socket } from 'node:net';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import {
  InstanceGone,
  NotJoinable,
  type ExecOutcome,
  type ExecRequest,
} from '../../contracts/sandbox-driver.ts';
import type { Vitals } from '../../model/sandbox.ts';
import { encodeMessage, FRAME_KINDS, FrameReader, type Frame } from '../spawner/frames.ts';
import {
  handle,
  PROTOCOL,
  type DaemonMessage,
  type Handlers,
  type SocketOrder,
  type InstanceReport,
  type SpawnerConfig,
  type SpawnerMessage,
  type StartTerms,
} from '../spawner/protocol.ts';
import type { ProbeReport } from '../spawner/probes/readiness.ts';
import type { ProcessRefusal, ProcessStart } from '../spawner/processes/process-messages.ts';
import { Heartbeat } from './spawner-heartbeat.ts';
import { SpawnerSilent, SpawnerUnusable } from './spawner-process.ts';
import { CommandLink, SpawnerLost } from './command-link.ts';

export type SpawnerHello = Extract<SpawnerMessage, { type: 'hello' }>;

export interface LinkEvents {
  fact(id: string, vitals: Vitals, programsEnded?: string): void;
  silent(): void;
  back(): void;
  givenUp(): void;
  /** Called after all open requests have failed. */
  lost(): void;
}

export interface LinkOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly events: LinkEvents;
}

interface Waiting<T> {
  readonly settle: (answer: T) => void;
  readonly fail: (error: Error) => void;
}

const HELLO_PATIENCE_MS = 30_000;

type SandboxAnswer = Extract<SpawnerMessage, { type: 'forwarded' | 'probed' | 'frozen' | 'held' }>;

const settle = <T>(waiting: Map<number, Waiting<T>>, request: number, answer: T): void => {
  waiting.get(request)?.settle(answer);
  waiting.delete(request);
};

/** Open requests and channels fail when the connection is lost. */
export class SpawnerLink {
  readonly #socket: Socket;
  readonly #events: LinkEvents;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #heartbeat: Heartbeat;
  readonly #reader = new FrameReader();
  readonly #lists = new Map<number, Waiting<readonly InstanceReport[]>>();
  readonly #starts = new Map<number, Waiting<'under-way' | 'full'>>();
  readonly #asked = new Map<number, Waiting<SandboxAnswer>>();
  readonly #commands: CommandLink;
  readonly #handlers: Handlers<SpawnerMessage> = {
    hello: (hello) => this.#greeting?.settle(hello),
    unusable: ({ reason }) => this.#greeting?.fail(new SpawnerUnusable(reason)),
    alive: () => {},
    listed: ({ request, instances }) => settle(this.#lists, request, instances),
    started: ({ request, outcome }) => settle(this.#starts, request, outcome),
    forwarded: (answer) => settle(this.#asked, answer.request, answer),
    probed: (answer) => settle(this.#asked, answer.request, answer),
    frozen: (answer) => settle(this.#asked, answer.request, answer),
    held: (answer) => settle(this.#asked, answer.request, answer),
    unreachable: (answer) => this.#unreachable(answer),
    fact: ({ id, vitals, programsEnded }) => this.#events.fact(id, vitals, programsEnded),
    refused: (answer) => this.#refused(answer),
    exited: (end) => this.#commands.exited(end),
    log: ({ level, fields, event }) => this.#log[level]({ ...fields, from: 'spawner' }, event),
  };
  readonly lost: Promise<void>;
  #tellLost: () => void = () => {};
  #greeting: Waiting<SpawnerHello> | undefined;
  #next = 1;
  #over = false;

  constructor(socket: Socket, { clock, log, events }: LinkOptions) {
    this.#socket = socket;
    this.#clock = clock;
    this.#log = log;
    this.#events = events;
    this.lost = new Promise((resolve) => {
      this.#tellLost = resolve;
    });
    this.#commands = new CommandLink({
      clock,
      number: () => this.#number(),
      send: (message) => this.#send(message),
    });
    this.#heartbeat = new Heartbeat(clock, {
      ask: () => this.#send({ type: 'beat' }),
      silent: () => events.silent(),
      missed: () => this.#commands.cutOverdue(),
      back: () => events.back(),
      givenUp: () => events.givenUp(),
    });
    socket.on('data', (chunk) => this.#read(chunk));
    socket.on('error', () => this.#lose());
    socket.once('close', () => this.#lose());
  }

  /** Rejects with SpawnerUnusable, or SpawnerSilent if there is no answer. */
  async greet(config: SpawnerConfig, protocol = PROTOCOL): Promise<SpawnerHello> {
    const callOff = this.#clock.at(this.#clock.now() + HELLO_PATIENCE_MS, () =>
      this.#greeting?.fail(new SpawnerSilent('the spawner does not answer')),
    );
    try {
      const hello = await new Promise<SpawnerHello>((settle, fail) => {
        this.#greeting = { settle, fail };
        this.#send({ type: 'hello', protocol, config });
      });
      if (hello.protocol === protocol && !this.#over) this.#heartbeat.start();
      return hello;
    } finally {
      callOff();
    }
  }

  get silent(): boolean {
    return this.#heartbeat.silent;
  }

  list(): Promise<readonly InstanceReport[]> {
    return new Promise((settle, fail) => {
      const request = this.#number();
      this.#lists.set(request, { settle, fail });
      this.#send({ type: 'list', request });
    });
  }

  /** Rejects with SpawnerLost if the outcome is unknown. */
  start(id: string, terms: StartTerms): Promise<'under-way' | 'full'> {
    return new Promise((settle, fail) => {
      const request = this.#number();
      this.#starts.set(request, { settle, fail });
      this.#send({ type: 'start', request, id, ...terms });
    });
  }

  /** Rejects with InstanceGone or NotJoinable. */
  async socketTo(order: Omit<SocketOrder, 'request'>): Promise<string> {
    const answer = await this.#ask((request) => ({ ...order, request }));
    return answer.type === 'forwarded' ? answer.socket : '';
  }

  /** Rejects with InstanceGone. */
  async probe(id: string): Promise<readonly ProbeReport[]> {
    const answer = await this.#ask((request) => ({ type: 'probe', request, id }));
    return answer.type === 'probed' ? answer.reports : [];
  }

  /** Rejects with InstanceGone or NotJoinable. */
  async freeze(id: string, frozen: boolean): Promise<void> {
    await this.#ask((request) => ({ type: 'freeze', request, id, frozen }));
  }

  /** Undefined if the process has its holder. */
  async hold(id: string, order: ProcessStart): Promise<ProcessRefusal | undefined> {
    const answer = await this.#ask((request) => ({ type: 'hold', request, id, order }));
    return answer.type === 'held' ? answer.refusal : undefined;
  }

  #ask(order: (request: number) => DaemonMessage): Promise<SandboxAnswer> {
    return new Promise((settle, fail) => {
      const request = this.#number();
      this.#asked.set(request, { settle, fail });
      this.#send(order(request));
    });
  }

  kill(id: string): void {
    this.#send({ type: 'kill', id });
  }

  /** The link is lost when the spawner leaves. */
  leave(): void {
    this.#send({ type: 'leave' });
  }

  close(): void {
    this.#socket.destroy();
  }

  exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return this.#commands.exec(id, request, signal);
  }

  #number(): number {
    if (this.#over) throw new SpawnerLost('the spawner is not running');
    return this.#next++;
  }

  #send(message: DaemonMessage): void {
    if (!this.#over) this.#socket.write(encodeMessage(message));
  }

  #read(chunk: Buffer): void {
    this.#heartbeat.heard();
    try {
      for (const frame of this.#reader.feed(chunk)) this.#take(frame);
    } catch (error) {
      this.#log.error({ error }, 'daemon-not-follow-spawner');
      this.#socket.destroy();
    }
  }

  #take(frame: Frame): void {
    const { kind, payload } = frame;
    if (kind === FRAME_KINDS.message) {
      const message = JSON.parse(String(payload)) as SpawnerMessage;
      return handle(this.#handlers, message.type, message);
    }
    this.#commands.output(frame);
  }

  #unreachable({ request, gone, reason }: Extract<SpawnerMessage, { type: 'unreachable' }>): void {
    const error = gone ? new InstanceGone(reason) : new NotJoinable(reason);
    this.#asked.get(request)?.fail(error);
    this.#asked.delete(request);
  }

  #refused({ channel, gone, reason }: Extract<SpawnerMessage, { type: 'refused' }>): void {
    const error = gone
      ? new InstanceGone(reason)
      : new NotJoinable(`nothing could be run in the sandbox: ${reason}`);
    this.#commands.refused(channel, error);
  }

  #lose(): void {
    if (this.#over) return;
    this.#over = true;
    this.#heartbeat.stop();
    this.#socket.destroy();
    const error = new SpawnerLost('the spawner ended; the command of this request is lost');
    this.#greeting?.fail(error);
    for (const waiting of [
      ...this.#lists.values(),
      ...this.#starts.values(),
      ...this.#asked.values(),
    ])
      waiting.fail(error);
    this.#commands.lose(error);
    for (const map of [this.#lists, this.#starts, this.#asked]) map.clear();
    this.#events.lost();
    this.#tellLost();
  }
}
