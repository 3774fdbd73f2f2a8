import type { Vitals } from '../../../model/sandbox.ts';
import type { BareHomes } from './bare-homes.ts';
import { endStart } from './cgroup-folders.ts';
import type { Cgroups } from './cgroups.ts';
import type { HostUids } from './host-uids.ts';
import { Holdings } from './holdings.ts';
import type { JoinPlace } from './join-place.ts';
import { Launch } from './launch.ts';
import { startFailure } from '../public-message.ts';
import type { InstanceNote, Notes, RunningNote } from './notes.ts';
import { childrenOf, isAlive, readProcessStat, type ProcessIdentity } from './process-identity.ts';
import type { StartTerms } from '../protocol.ts';
import { probesOf } from '../probes/readiness.ts';
import { environmentOf, rootfsOf, type Rootfs } from './rootfs.ts';
import { limitVariables } from './visible-limits.ts';
import type { SpawnerLog } from '../spawner-log.ts';
import type { Watcher } from '../watcher.ts';

export interface InstanceDeps {
  readonly terms: InstanceTerms;
  readonly rootfs: Rootfs;
  readonly cgroups: Cgroups;
  /** Absent unless root: then sandboxes have the spawner's uid. */
  readonly uids: HostUids | undefined;
  readonly homes: BareHomes;
  readonly notes: Notes;
  readonly watcher: Watcher;
  readonly log: SpawnerLog;
  readonly now: () => number;
  readonly report: (id: string, vitals: Vitals) => void;
}

export interface InstanceTerms {
  readonly bootId: string;
  readonly bwrapPath: string;
  readonly pidsMax: number;
  readonly bare: boolean;
  /** Path of the output's fifo. */
  readonly outputOf: (id: string, tenant: string) => string;
}

/** The daemon's own deadline is usually shorter. */
const START_DEADLINE_MS = 120_000;
/** Until the main process runs. A start holds a slot that others wait for. */
const START_CORES = 1;
/** Only the outer bubblewrap reports the exit code, delayed by the sandbox's CPU limit. */
const OUTER_PATIENCE_MS = 10_000;

/**
 * A sandbox until no process is left and its resources are released. To end it, kills the init of
 * its namespace.
 */
export class Instance {
  readonly id: string;
  /** Settles after it runs or is gone. */
  readonly settled: Promise<void>;
  /** Settles after its resources are released. */
  readonly reclaimed: Promise<void>;

  readonly #deps: InstanceDeps;
  readonly #held: Holdings;
  #vitals: Vitals = { kind: 'starting' };
  #note: InstanceNote | undefined;
  #launch: Launch | undefined;
  #initPid: number | undefined;
  #init: ProcessIdentity | undefined;
  #initGone = true;
  #outerGone = true;
  #killed = false;
  #reclaiming = false;
  #exitCode: number | null = null;
  #reason = '';
  #cpuCores = START_CORES;
  #deadline: NodeJS.Timeout | undefined;
  #settle: () => void = () => {};
  #markReclaimed: () => void = () => {};

  private constructor(id: string, deps: InstanceDeps) {
    this.id = id;
    this.#deps = deps;
    this.#held = new Holdings(id, deps);
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.reclaimed = new Promise((resolve) => {
      this.#markReclaimed = resolve;
    });
  }

  /** Returns at once. Any failure is reported as `gone`. */
  static start(id: string, terms: StartTerms, deps: InstanceDeps): Instance {
    const instance = new Instance(id, deps);
    const tooLong = (): void => instance.#failStart('it did not start in time');
    instance.#deadline = setTimeout(tooLong, START_DEADLINE_MS);
    try {
      instance.#start(terms);
    } catch (error) {
      deps.log.warn('sandbox-not-started', { id, error: String(error) });
      instance.#failStart(startFailure(error));
    }
    return instance;
  }

  /** Reports `gone` if it has ended. */
  static adopt(note: InstanceNote, running: RunningNote, deps: InstanceDeps): Instance {
    const instance = new Instance(note.id, deps);
    instance.#vitals = { kind: 'available', startedAt: running.startedAt };
    instance.#take(note);
    instance.#outerGone = false;
    deps.watcher.watch(instance.#outerKey, note.outer, () =>
      instance.#outerEnded(null, 'it ended'),
    );
    instance.#watchInit(running.init);
    instance.#settle();
    return instance;
  }

  /** Cleans up after a former spawner. Reports nothing. */
  static async sweep(
    note: InstanceNote,
    running: RunningNote | undefined,
    deps: InstanceDeps,
  ): Promise<void> {
    const instance = new Instance(note.id, { ...deps, report: () => {} });
    instance.#take(note);
    // Children can't be found after their parent is gone.
    if (isAlive(note.outer))
      for (const identity of [...childrenOf(note.outer.pid), note.outer])
        instance.#held.kill(identity);
    if (running && isAlive(running.init)) instance.#held.kill(running.init);
    instance.#end();
    await instance.reclaimed;
  }

  get vitals(): Vitals {
    return this.#vitals;
  }

  get place(): JoinPlace | undefined {
    if (
      this.#vitals.kind !== 'available' ||
      !this.#note ||
      !this.#init ||
      this.#initGone ||
      this.#killed
    )
      return undefined;
    const { cgroups, env, workingDir } = this.#note;
    return {
      init: this.#init,
      user: this.#note.image?.user,
      cgroups,
      env,
      workingDir,
      bare: this.#held.bare,
    };
  }

  get image(): string | undefined {
    return this.#note?.image?.key;
  }

  get isBare(): boolean {
    return this.#held.bare !== undefined;
  }

  /** `gone` is reported after all resources are released. May be repeated. */
  kill(reason = 'killed'): void {
    this.#killed = true;
    this.#reason ||= reason;
    if (this.#init) this.#deps.watcher.kill(this.#initKey);
    else if (this.#initPid !== undefined) this.#initFound(this.#initPid);
    // An init that still appears is killed then.
  }

  get #initKey(): string {
    return `${this.id}/init`;
  }

  get #outerKey(): string {
    return `${this.id}/outer`;
  }

  #start({ tenant, definition, image, mounts = [] }: StartTerms): void {
    const deps = this.#deps;
    const [given] = definition.containers;
    if (!given || definition.containers.length !== 1)
      throw new Error('exactly one container can be run');
    const env = { ...limitVariables(deps.cgroups.level, given), ...given.env };
    const container = { ...given, env };
    const uid = this.#held.takeUid();
    this.#cpuCores = container.cpuCores;
    const cgroups = deps.cgroups.create(this.id, tenant, {
      memoryBytes: container.memoryBytes,
      cpuCores: Math.max(container.cpuCores, START_CORES),
      processes: deps.terms.pidsMax,
    });
    this.#held.cgroups = cgroups;
    const launch = Launch.begin(deps.rootfs.launcher, {
      init: (pid) => this.#initTold(pid),
      executed: () => this.#executed(),
      failed: (reason) => this.#failStart(reason),
      ended: (code, reason) => this.#outerEnded(code, reason),
    });
    this.#launch = launch;
    this.#outerGone = false;
    const probes = probesOf(definition);
    const note = {
      id: this.id,
      bootId: deps.terms.bootId,
      outer: launch.outer,
      uid: uid ?? process.getuid?.() ?? 0,
      cgroups,
      env: container.env,
      workingDir: container.workingDir,
      tenant,
      image: image ? { key: image.key, user: image.user } : undefined,
      probes,
    };
    this.#note = deps.terms.bare ? this.#held.bareNote(note) : note;
    deps.notes.write(this.#note);
    const bare = deps.terms.bare
      ? { cwd: this.#note.workingDir, env: environmentOf(this.#note.env) }
      : undefined;
    launch.order({
      bare,
      definition,
      container,
      mounts,
      rootfs: rootfsOf(deps.rootfs, image),
      bwrapPath: deps.terms.bwrapPath,
      level: deps.cgroups.level,
      pidsMax: deps.terms.pidsMax,
      uid,
      cgroups,
      output: deps.terms.outputOf(this.id, tenant),
    });
  }

  #take(note: InstanceNote): void {
    this.#note = note;
    this.#held.takeOver(note);
  }

  #initTold(pid: number): void {
    this.#initPid = pid;
    if (this.#killed) this.#initFound(pid);
  }

  /** The pid may have been reused: accepts only a child of our own bubblewrap. */
  #initFound(pid: number): void {
    if (this.#init) return;
    const stat = readProcessStat(pid);
    if (!stat || stat.parent !== this.#note?.outer.pid || stat.state === 'Z' || stat.exiting)
      return;
    this.#watchInit({ pid, startTime: stat.startTime });
  }

  #watchInit(init: ProcessIdentity): void {
    this.#init = init;
    this.#initGone = false;
    this.#deps.watcher.watch(this.#initKey, init, () => this.#initEnded());
    if (this.#killed) this.#deps.watcher.kill(this.#initKey);
  }

  #executed(): void {
    if (this.#initPid !== undefined) this.#initFound(this.#initPid);
    if (!this.#init || this.#killed || this.#vitals.kind !== 'starting') return;
    endStart(this.#held.cgroups, this.#cpuCores);
    const startedAt = this.#deps.now();
    try {
      this.#deps.notes.writeRunning(this.id, { init: this.#init, startedAt });
    } catch (error) {
      this.#failStart(startFailure(error));
      return;
    }
    clearTimeout(this.#deadline);
    this.#say({ kind: 'available', startedAt });
    this.#settle();
  }

  #failStart(reason: string): void {
    if (this.#vitals.kind !== 'starting' || this.#reclaiming) return;
    this.kill(reason);
    if (this.#init) return;
    this.#launch?.kill();
    this.#endWhenGone();
  }

  #initEnded(): void {
    this.#initGone = true;
    if (!this.#outerGone) setTimeout(() => this.#endOuter(), OUTER_PATIENCE_MS).unref();
    this.#endWhenGone();
  }

  #endOuter(): void {
    if (this.#outerGone) return;
    if (this.#launch) this.#launch.kill();
    else this.#deps.watcher.kill(this.#outerKey);
  }

  #outerEnded(code: number | null, reason: string): void {
    this.#outerGone = true;
    this.#exitCode = code;
    this.#reason ||= this.#vitals.kind === 'starting' ? `${reason} before it was up` : reason;
    this.#endWhenGone();
  }

  #endWhenGone(): void {
    if (this.#initGone && this.#outerGone) this.#end();
  }

  #end(): void {
    if (this.#reclaiming) return;
    this.#reclaiming = true;
    clearTimeout(this.#deadline);
    this.#settle();
    this.#reclaim().catch((error: unknown) =>
      this.#deps.log.error('ended-sandbox-not-cleaned-up', {
        id: this.id,
        error: String(error),
      }),
    );
  }

  async #reclaim(): Promise<void> {
    const { watcher, notes } = this.#deps;
    await this.#held.clear();
    watcher.drop(this.#initKey);
    watcher.drop(this.#outerKey);
    await this.#held.removeHome();
    await notes.remove(this.id);
    this.#held.giveBackUid();
    const gone = { exitCode: this.#exitCode, reason: this.#reason || 'it ended' };
    this.#say({ kind: 'gone', ...gone, ...(!this.#killed && this.#held.causeOf(gone.exitCode)) });
    this.#markReclaimed();
  }

  #say(vitals: Vitals): void {
    this.#vitals = vitals;
    this.#deps.report(this.id, vitals);
  }
}
