import { chmodSync, lstatSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import type { LogEventCode } from '../../contracts/log-events.ts';
import type { Vitals } from '../../model/sandbox.ts';
import { BareHomes } from './sandbox/bare-homes.ts';
import { findCgroups, type Cgroups } from './sandbox/cgroups.ts';
import { Agents } from './agents/agents.ts';
import { HostUids } from './sandbox/host-uids.ts';
import type { InstanceDeps } from './sandbox/instance.ts';
import { Instances } from './sandbox/instances.ts';
import { isolationWarnings } from './sandbox/isolation-warnings.ts';
import { LauncherPool } from './launcher-pool.ts';
import { LogPump } from './sandbox/log-pump.ts';
import { Notes } from './sandbox/notes.ts';
import { ProbeRunner } from './probes/probe-runner.ts';
import { probed } from './probes/probe.ts';
import { Holders } from './processes/holders.ts';
import { processesOf, readBootId } from './sandbox/process-identity.ts';
import {
  nameOf,
  pathsOf,
  PROTOCOL,
  type DaemonMessage,
  type SpawnerConfig,
  type SpawnerMessage,
  type SpawnerPaths,
} from './protocol.ts';
import { Readiness } from './probes/readiness.ts';
import { prepareRootfs, type Rootfs } from './sandbox/rootfs.ts';
import { Session } from './session.ts';
import type { SpawnerLog } from './spawner-log.ts';
import { Watcher } from './watcher.ts';

const LONELY_MS = 30_000; // In ms.

interface Settled {
  readonly config: SpawnerConfig;
  readonly rootfs: Rootfs;
  readonly watcher: Watcher;
  readonly logs: LogPump;
}

export interface SpawnerOptions {
  /** This process holds its lock. */
  readonly dataDir: string;
  readonly now: () => number;
  /** 0 to 1. */
  readonly random: () => number;
  /** To end the process. */
  readonly over: () => void;
}

/** Owns the sandboxes of a data folder. They outlive spawner and daemon. */
export class Spawner {
  readonly #options: SpawnerOptions;
  readonly #paths: SpawnerPaths;
  readonly #bootId = readBootId();
  readonly #cgroups: Cgroups;
  readonly #uids: HostUids | undefined;
  readonly #homes: BareHomes;
  readonly #notes: Notes;
  readonly #instances: Instances;
  readonly #forwarders: Agents;
  readonly #fileAgents: Agents;
  readonly #readiness: Readiness;
  readonly #launchers: LauncherPool;
  readonly #holderLaunchers: LauncherPool;
  readonly #holders: Holders;
  readonly #server: Server;
  readonly #log: SpawnerLog = {
    info: (event, fields) => this.#say('info', event, fields),
    warn: (event, fields) => this.#say('warn', event, fields),
    error: (event, fields) => this.#say('error', event, fields),
  };
  #settled: Settled | undefined;
  #settling: Promise<Settled> = Promise.reject(new Error('no daemon has connected yet'));
  #session: Session | undefined;
  #lonely: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: SpawnerOptions) {
    this.#options = options;
    this.#settling.catch(() => {});
    this.#paths = pathsOf(options.dataDir);
    const name = nameOf(options.dataDir);
    this.#cgroups = findCgroups(name);
    this.#uids =
      process.getuid?.() === 0
        ? new HostUids({ first: 0, count: 0 }, Number.parseInt(name.slice(-6), 16))
        : undefined;
    this.#homes = new BareHomes(this.#paths.homes);
    this.#notes = new Notes(options.dataDir);
    const joining = {
      launcherPath: () => this.#launcherPath(),
      placeOf: (id: string) => this.#instances.placeOf(id),
    };
    this.#forwarders = new Agents({ kind: 'forward', folder: this.#paths.forwards, ...joining });
    this.#fileAgents = new Agents({ kind: 'files', folder: this.#paths.fileAgents, ...joining });
    this.#launchers = new LauncherPool(joining.launcherPath);
    this.#holderLaunchers = new LauncherPool(joining.launcherPath, 'hold');
    this.#holders = new Holders({
      launchers: this.#holderLaunchers,
      placeOf: joining.placeOf,
      folder: this.#paths.holders,
      lost: (id, why) => this.#programsEnded(id, why),
      log: this.#log,
    });
    const probes = new ProbeRunner({
      forwarders: this.#forwarders,
      launchers: this.#launchers,
      placeOf: joining.placeOf,
    });
    this.#readiness = new Readiness({
      run: (id, tenant, probe) => probes.run(id, tenant, probe),
      report: (id, vitals) => this.#report(id, vitals),
      noteReady: (id) => this.#noteReady(id),
      isFrozen: (id) => this.#instances.isFrozen(id),
      later: (milliseconds, act) => {
        const timer = setTimeout(act, milliseconds);
        return () => clearTimeout(timer);
      },
      random: options.random,
    });
    this.#instances = new Instances({
      deps: () => this.#instanceDeps(),
      parallel: () => this.#settled?.config.parallelStarts ?? 1,
      readiness: this.#readiness,
    });
    this.#server = createServer((socket) => this.#sessionOn(socket));
  }

  #launcherPath(): string {
    return this.#settled?.rootfs.launcher ?? '';
  }

  #say(
    level: 'info' | 'warn' | 'error',
    event: LogEventCode,
    fields: Readonly<Record<string, unknown>> = {},
  ): void {
    this.#session?.send({ type: 'log', level, event, fields });
  }

  #sessionOn(socket: Socket): Session {
    return new Session(socket, {
      daemon: {
        accept: (session, hello) => this.#accept(session, hello),
        leave: () => this.stop(),
        refused: () => this.#refused(),
        ended: (session) => this.#sessionEnded(session),
      },
      instances: this.#instances,
      forwarders: this.#forwarders,
      fileAgents: this.#fileAgents,
      readiness: this.#readiness,
      launchers: this.#launchers,
      holders: this.#holders,
      launcherPath: () => this.#launcherPath(),
    });
  }

  async start(): Promise<void> {
    const { socketFolder, socket } = this.#paths;
    makePrivate(socketFolder);
    rmSync(socket, { force: true });
    this.#forwarders.prepare();
    this.#fileAgents.prepare();
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(socket, resolve);
    });
    chmodSync(socket, 0o600);
    this.#awaitDaemon();
  }

  /** Sandboxes, their processes and terminals stay. */
  stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#holders.stop();
    clearTimeout(this.#lonely);
    const ended = this.#settled?.logs.release(this.#instances.count === 0) ?? Promise.resolve();
    void ended.then(() => this.#end());
  }

  #end(): void {
    this.#session?.close();
    this.#server.close();
    this.#settled?.watcher.stop();
    this.#readiness.stop();
    this.#forwarders.stop();
    this.#fileAgents.stop();
    this.#launchers.stop();
    this.#holderLaunchers.stop();
    rmSync(this.#paths.socket, { force: true });
    if (this.#paths.socketFolder !== this.#options.dataDir)
      rmSync(this.#paths.socketFolder, { recursive: true, force: true });
    // Unread notes belong to running sandboxes: a refused daemon adopts none.
    if (this.#instances.count === 0 && this.#notes.none) {
      rmSync(this.#paths.rootfs, { recursive: true, force: true });
      this.#cgroups.remove();
      this.#homes.remove();
    }
    this.#options.over();
  }

  async #accept(
    session: Session,
    hello: Extract<DaemonMessage, { type: 'hello' }>,
  ): Promise<SpawnerMessage> {
    const answer = {
      type: 'hello' as const,
      protocol: PROTOCOL,
      pid: process.pid,
      isolation: hello.config.isolation === 'none' ? 'none' : this.#cgroups.level,
      freezes: this.#cgroups.freezes,
    };
    if (hello.protocol !== PROTOCOL) return { ...answer, warnings: [] };
    this.#settling = this.#settling
      .catch(() => undefined)
      .then((settled) => this.#settle(hello.config, settled));
    await this.#settling;
    clearTimeout(this.#lonely);
    const former = this.#session;
    this.#session = session;
    former?.close();
    const warnings = isolationWarnings({
      isolation: hello.config.isolation,
      hasUids: this.#uids !== undefined,
      someBare: this.#instances.someBare,
    });
    return { ...answer, warnings: [...warnings, ...this.#cgroups.warnings] };
  }

  async #settle(config: SpawnerConfig, before: Settled | undefined): Promise<Settled> {
    const prepared = prepareRootfs(this.#paths.rootfs, config.launcherPath);
    this.#uids?.useRange(config.uidRange);
    if (before) {
      before.logs.use(config.logs);
      const { writable: _unproven, ...rest } = prepared;
      const { writable } = before.rootfs;
      this.#settled = {
        config,
        rootfs: { ...rest, writable },
        watcher: before.watcher,
        logs: before.logs,
      };
      return this.#settled;
    }
    const rootfs = await probed(prepared, {
      bwrapPath: config.bwrapPath,
      uid: this.#uids ? config.uidRange.first : undefined,
      bare: config.isolation === 'none',
    });
    const watcher = new Watcher(rootfs.launcher, this.#log);
    watcher.start();
    const logs = new LogPump({
      launcherPath: rootfs.launcher,
      folder: this.#paths.logs,
      watcher,
      log: this.#log,
    });
    logs.use(config.logs);
    this.#settled = { config, rootfs, watcher, logs };
    this.#endOrphans(rootfs, watcher);
    await this.#instances.adopt();
    await this.#holders.adopt(this.#instances.ids);
    return this.#settled;
  }

  /** No daemon waits for commands of a former spawner. */
  #endOrphans(rootfs: Rootfs, watcher: Watcher): void {
    for (const orphan of processesOf(rootfs.launcher, 'join')) {
      const key = `orphan/${orphan.pid}`;
      watcher.watch(key, orphan, () => {});
      watcher.kill(key);
    }
  }

  #refused(): void {
    if (!this.#settled) this.stop();
  }

  #sessionEnded(session: Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#awaitDaemon();
  }

  #awaitDaemon(): void {
    clearTimeout(this.#lonely);
    this.#lonely = setTimeout(() => this.stop(), LONELY_MS);
  }

  #programsEnded(id: string, programsEnded: string): void {
    const vitals = this.#instances.vitalsOf(id);
    if (this.#session && vitals) this.#session.send({ type: 'fact', id, vitals, programsEnded });
    else this.#instances.noteProgramsEnded(id, programsEnded);
  }

  #report(id: string, vitals: Vitals): void {
    if (vitals.kind === 'gone') this.#holders.forget(id);
    this.#session?.send({ type: 'fact', id, vitals });
  }

  /** Otherwise the next spawner probes it as if it were new. */
  #noteReady(id: string): void {
    try {
      this.#notes.writeReady(id);
    } catch (error) {
      this.#log.warn('readiness-not-recorded', { id, error: String(error) });
    }
  }

  #instanceDeps(): InstanceDeps {
    const settled = this.#settled;
    if (!settled) throw new Error('no daemon has connected yet');
    return {
      terms: {
        ...settled.config,
        bootId: this.#bootId,
        bare: settled.config.isolation === 'none',
        outputOf: (id, tenant) => settled.logs.outputOf(id, tenant),
      },
      ...settled,
      homes: this.#homes,
      cgroups: this.#cgroups,
      uids: this.#uids,
      notes: this.#notes,
      log: this.#log,
      now: this.#options.now,
      report: () => {},
    };
  }
}

/** Throws if the folder belongs to somebody else: access to its socket is as good as root. */
const makePrivate = (folder: string): void => {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new Error(`${folder} must be a folder of the daemon's user`);
  if ((found.mode & 0o077) !== 0) chmodSync(folder, 0o700);
};
