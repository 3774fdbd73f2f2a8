import { signalOf } from '../../../lib/signal-names.ts';
import type { Gone } from '../../../model/sandbox.ts';
import type { SpawnerLog } from '../spawner-log.ts';
import type { Watcher } from '../watcher.ts';
import { hostPath, processesOfBare, removeHome, type Bare, type BareHomes } from './bare-homes.ts';
import { forbidForks, outOfMemoryIn, processesIn, removeCgroups } from './cgroup-folders.ts';
import type { HostUids } from './host-uids.ts';
import type { InstanceNote } from './notes.ts';
import { readProcessStat, type ProcessIdentity } from './process-identity.ts';

export interface HoldingsDeps {
  /** Absent if the spawner isn't root. */
  readonly uids: HostUids | undefined;
  readonly homes: BareHomes;
  readonly watcher: Watcher;
  readonly log: SpawnerLog;
}

const MAX_PAUSE_MS = 1_000;

/** The host resources of one sandbox: a uid, cgroups, and the home of a bare sandbox. */
export class Holdings {
  cgroups: readonly string[] = [];
  readonly #id: string;
  readonly #deps: HoldingsDeps;
  #uid: number | undefined;
  #bare: Bare | undefined;
  #memoryRanOut = false;

  constructor(id: string, deps: HoldingsDeps) {
    this.#id = id;
    this.#deps = deps;
  }

  /** Undefined if the sandbox is isolated. */
  get bare(): Bare | undefined {
    return this.#bare;
  }

  /** Takes a host uid, if the spawner has any. Throws if all are taken. */
  takeUid(): number | undefined {
    const { uids } = this.#deps;
    this.#uid = uids?.take();
    if (uids && this.#uid === undefined) throw new Error('all host uids are taken');
    return this.#uid;
  }

  /** Adopts the resources that a former spawner assigned. */
  takeOver({ home, uid, cgroups }: InstanceNote): void {
    if (home !== undefined) this.#bare = { home, uid };
    this.cgroups = cgroups;
    this.#uid = uid;
    this.#deps.uids?.mark(uid);
  }

  /** Creates a home on the host, and returns the note that includes it. */
  bareNote(note: InstanceNote): InstanceNote {
    const home = this.#deps.homes.create(this.#id, note.uid);
    this.#bare = { home, uid: note.uid };
    return {
      ...note,
      home,
      env: { HOME: home, ...note.env },
      workingDir: hostPath(home, note.workingDir),
    };
  }

  /** Kills all processes until the sandbox's cgroups are empty, then removes them. */
  async clear(): Promise<void> {
    this.#memoryRanOut = outOfMemoryIn(this.cgroups) > 0;
    for (
      let pause = 1;
      !removeCgroups(this.cgroups) || this.#strays().length > 0;
      pause = Math.min(pause * 2, MAX_PAUSE_MS)
    ) {
      // A bare sandbox has no init to kill, so stop its forks: they could outrun the kills.
      if (this.#bare) forbidForks(this.cgroups);
      for (const pid of [...processesIn(this.cgroups), ...this.#strays()])
        this.kill(readProcessStat(pid));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /**
   * Reports `outOfMemory` if the main process was killed and memory ran out. Valid after `clear`.
   */
  causeOf(exitCode: number | null): Pick<Gone, 'outOfMemory'> {
    return exitCode !== null && signalOf(exitCode) === 'KILL' && this.#memoryRanOut
      ? { outOfMemory: true }
      : {};
  }

  /** Removes the home of a bare sandbox. Never rejects. */
  async removeHome(): Promise<void> {
    if (!this.#bare) return;
    await removeHome(this.#bare.home).catch((error: unknown) =>
      this.#deps.log.warn('sandbox-folder-not-removed', {
        id: this.#id,
        error: String(error),
      }),
    );
  }

  giveBackUid(): void {
    if (this.#uid !== undefined) this.#deps.uids?.giveBack(this.#uid);
  }

  /** Kills a process that nothing else watches. */
  kill(identity: ProcessIdentity | undefined): void {
    if (!identity) return;
    const key = `${this.#id}/${identity.pid}`;
    this.#deps.watcher.watch(key, identity, () => {});
    this.#deps.watcher.kill(key);
  }

  /**
   * Finds a bare sandbox's processes if it has no cgroup. Others are found by namespace or cgroup.
   */
  #strays(): readonly number[] {
    return this.#bare && this.cgroups.length === 0
      ? processesOfBare(this.#bare, this.#deps.uids !== undefined)
      : [];
  }
}
