import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { ExecOutcome, ExecRequest } from '../../contracts/sandbox-driver.ts';
import type { Vitals } from '../../model/sandbox.ts';
import {
  PROTOCOL,
  type InstanceReport,
  type SocketOrder,
  type SpawnerConfig,
  type StartTerms,
} from '../spawner/protocol.ts';
import type { ProbeReport } from '../spawner/probes/readiness.ts';
import type { ProcessRefusal, ProcessStart } from '../spawner/processes/process-messages.ts';
import { SpawnerLost } from './command-link.ts';
import { SpawnerLink, type SpawnerHello } from './spawner-link.ts';
import {
  connectSpawner,
  killSpawner,
  SpawnerSilent,
  SpawnerUnusable,
  spawnerStandsStill,
  type SpawnerProcessOptions,
} from './spawner-process.ts';

export interface SpawnerClientOptions {
  readonly process: SpawnerProcessOptions;
  readonly config: SpawnerConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly fact: (id: string, vitals: Vitals, programsEnded?: string) => void;
  /** Called whenever a spawner has connected, before its facts. */
  readonly connected: (instances: readonly InstanceReport[]) => void;
}

/** Arrived before the list. */
type Early = Pick<InstanceReport, 'id' | 'vitals' | 'programsEnded'>;

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** Until a spawner connects. */
const PATIENCE_MS = 3_000;
/** For a spawner of another version. */
const LEAVE_PATIENCE_MS = 10_000;
/** The stopping daemon has not much more time itself. */
const STOP_PATIENCE_MS = 5_000;
/** Until one of this version answers and stays alive. */
const MAX_TRIES = 3;

/**
 * Keeps one spawner connected. Starts another about 1 s after it ends, or after 20 s of silence.
 */
export class SpawnerClient {
  readonly #options: SpawnerClientOptions;
  #link: SpawnerLink | undefined;
  /** Before it becomes `#link`. */
  #opened: SpawnerLink | undefined;
  #hello: SpawnerHello | undefined;
  #stopped = false;
  #connecting: Promise<void> = Promise.resolve();
  /** Ends the pause between tries. */
  #hurry: () => void = () => {};
  #early: Early[] | undefined;
  readonly #waiting = new Set<(link: SpawnerLink | undefined) => void>();

  constructor(options: SpawnerClientOptions) {
    this.#options = options;
  }

  /** Rejects with SpawnerUnusable if no sandbox can run here. */
  async start(): Promise<void> {
    const connecting = this.#connect();
    this.#connecting = connecting.catch(() => {});
    await connecting;
  }

  /** Sandboxes and their processes keep running. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const give of [...this.#waiting]) give(undefined);
    this.#hurry();
    if (this.#opened) await this.#parted(this.#opened);
    const { clock, process } = this.#options;
    const callOff = clock.at(clock.now() + STOP_PATIENCE_MS, () => killSpawner(process.dataDir));
    await this.#connecting;
    callOff();
    if (this.#link?.silent) this.#end(this.#link);
    else if (this.#link) await this.#parted(this.#link);
  }

  get hello(): SpawnerHello | undefined {
    return this.#link ? this.#hello : undefined;
  }

  get silent(): boolean {
    return this.#link?.silent ?? false;
  }

  /** Repeats the order until a spawner takes it. */
  async startInstance(id: string, terms: StartTerms): Promise<'under-way' | 'full'> {
    for (;;) {
      const link = await this.#connected(Number.POSITIVE_INFINITY);
      try {
        return await link.start(id, terms);
      } catch (error) {
        if (!(error instanceof SpawnerLost) || this.#stopped) throw error;
      }
    }
  }

  /** Without a spawner does nothing: the next list shows the instance again. */
  kill(id: string): void {
    this.#link?.kill(id);
  }

  /** Rejects with InstanceGone or NotJoinable. */
  async freeze(id: string, frozen: boolean): Promise<void> {
    await (await this.#connected(PATIENCE_MS)).freeze(id, frozen);
  }

  /** Rejects with SpawnerLost if no spawner connects in time; the command has not run then. */
  async exec(id: string, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    const link = await this.#connected(Math.min(request.timeoutMs, PATIENCE_MS));
    return link.exec(id, request, signal);
  }

  /** Rejects with SpawnerLost if no spawner connects in time. */
  async hold(id: string, order: ProcessStart): Promise<ProcessRefusal | undefined> {
    return (await this.#connected(PATIENCE_MS)).hold(id, order);
  }

  async socketTo(order: Omit<SocketOrder, 'request'>): Promise<string> {
    return (await this.#connected(PATIENCE_MS)).socketTo(order);
  }

  async probe(id: string): Promise<readonly ProbeReport[]> {
    return (await this.#connected(PATIENCE_MS)).probe(id);
  }

  async #connect(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      if (this.#stopped) throw new SpawnerLost('the daemon stops');
      const link = await this.#open();
      if (this.#stopped) {
        await this.#parted(link);
        continue;
      }
      const hello = await this.#greet(link).catch((error: unknown) => {
        if (tries === MAX_TRIES || !(error instanceof SpawnerLost)) throw error;
      });
      if (!hello) continue;
      if (hello.protocol === PROTOCOL) return this.#take(link, hello);
      if (tries === MAX_TRIES)
        throw new SpawnerUnusable(`a spawner of another version (${hello.protocol}) does not exit`);
      this.#options.log.info(
        { theirs: hello.protocol, ours: PROTOCOL },
        'spawner-of-other-version',
      );
      await this.#left(link, LEAVE_PATIENCE_MS);
    }
  }

  /**
   * Rejects with SpawnerLost if the spawner ended, or was ended because a signal had stopped it.
   */
  async #greet(link: SpawnerLink): Promise<SpawnerHello> {
    try {
      return await link.greet(this.#options.config);
    } catch (error) {
      const still =
        error instanceof SpawnerSilent && spawnerStandsStill(this.#options.process.dataDir);
      if (still) this.#end(link);
      else link.close();
      throw still ? new SpawnerLost('a stalled spawner was ended') : error;
    }
  }

  async #open(): Promise<SpawnerLink> {
    const socket = await connectSpawner(this.#options.process);
    const { clock, log } = this.#options;
    const link = new SpawnerLink(socket, {
      clock,
      log,
      events: {
        fact: (id, vitals, programsEnded) => {
          if (this.#early) this.#early.push({ id, vitals, programsEnded });
          else this.#options.fact(id, vitals, programsEnded);
        },
        silent: () => log.warn({}, 'spawner-does-not-answer'),
        back: () => this.#isBack(link),
        givenUp: () => {
          log.error({}, 'spawner-not-recovered');
          this.#end(link);
        },
        lost: () => this.#lost(link),
      },
    });
    this.#early = [];
    this.#opened = link;
    return link;
  }

  async #take(link: SpawnerLink, hello: SpawnerHello): Promise<void> {
    const instances = await link.list();
    // An instance that ended before the list is not in it.
    const early = this.#early ?? [];
    const listed = new Set(instances.map(({ id }) => id));
    this.#early = undefined;
    this.#hello = hello;
    this.#link = link;
    this.#opened = undefined;
    this.#options.connected([...instances, ...early.filter(({ id }) => !listed.has(id))]);
    for (const { id, vitals, programsEnded } of early)
      if (listed.has(id)) this.#options.fact(id, vitals, programsEnded);
    for (const give of [...this.#waiting]) give(link);
  }

  #isBack(link: SpawnerLink): void {
    this.#options.log.info({}, 'spawner-answers-again');
    if (this.#link === link) for (const give of [...this.#waiting]) give(link);
  }

  /** Sandboxes keep running. */
  #end(link: SpawnerLink): void {
    killSpawner(this.#options.process.dataDir);
    link.close();
  }

  #lost(link: SpawnerLink): void {
    if (this.#opened === link) this.#opened = undefined;
    if (this.#link !== link) return;
    this.#link = undefined;
    if (this.#stopped) return;
    this.#options.log.warn({}, 'spawner-ended');
    this.#connecting = this.#reconnect();
  }

  async #reconnect(): Promise<void> {
    for (let pause = FIRST_PAUSE_MS; !this.#stopped; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        await this.#connect();
        return;
      } catch (error) {
        if (this.#stopped) return;
        this.#options.log.error({ error }, 'spawner-not-started');
      }
      await new Promise<void>((resolve) => {
        this.#hurry = resolve;
        this.#options.clock.at(this.#options.clock.now() + pause, resolve);
      });
    }
  }

  /** Ends a spawner that stays. Resolves after the link is lost. */
  async #left(link: SpawnerLink, patienceMs: number): Promise<void> {
    link.leave();
    const { clock } = this.#options;
    const callOff = clock.at(clock.now() + patienceMs, () => this.#end(link));
    await link.lost;
    callOff();
  }

  /** Ends a spawner that a signal has stopped. Resolves after the link is lost. */
  async #parted(link: SpawnerLink): Promise<void> {
    link.leave();
    const { clock, process } = this.#options;
    const callOff = clock.at(clock.now() + STOP_PATIENCE_MS, () => {
      if (spawnerStandsStill(process.dataDir)) this.#end(link);
      else link.close();
    });
    await link.lost;
    callOff();
  }

  #connected(patienceMs: number): Promise<SpawnerLink> {
    if (this.#link && !this.#link.silent) return Promise.resolve(this.#link);
    if (this.#stopped) return Promise.reject(new SpawnerLost('the daemon stops'));
    return new Promise((resolve, reject) => {
      const give = (link: SpawnerLink | undefined): void => {
        clearTimeout(timer);
        this.#waiting.delete(give);
        if (link) resolve(link);
        else reject(new SpawnerLost('the spawner is not running'));
      };
      const timer = Number.isFinite(patienceMs)
        ? setTimeout(() => give(undefined), patienceMs)
        : undefined;
      this.#waiting.add(give);
    });
  }
}
