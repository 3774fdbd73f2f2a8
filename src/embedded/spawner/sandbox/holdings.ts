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
  /** Absent unless root. */
  readonly uids: HostUids | undefined;
  readonly homes: BareHomes;
  readonly watcher: Watcher;
  readonly log: SpawnerLog;
}

const MAX_PAUSE_MS = 1_000;

/** A sandbox's uid, cgroups, and bare home. */
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

  get bare(): Bare | undefined {
    return this.#bare;
  }

  /** Throws if all are taken. */
  takeUid(): number | undefined {
    const { uids } = this.#deps;
    this.#uid = uids?.take();
    if (uids && this.#uid === undefined) throw new Error('all host uids are taken');
    return this.#uid;
  }

  /** Adopts resources from a former spawner. */
  takeOver({ home, uid, cgroups }: InstanceNote): void {
    if (home !== undefined) this.#bare = { home, uid };
    this.cgroups = cgroups;
    this.#uid = uid;
    this.#deps.uids?.mark(uid);
  }

  /** Creates the home that the note names. */
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

  async clear(): Promise<void> {
    this.#memoryRanOut = outOfMemoryIn(this.cgroups) > 0;
    for (
      let pause = 1;
      !removeCgroups(this.cgroups) || this.#strays().length > 0;
      pause = Math.min(pause * 2, MAX_PAUSE_MS)
    ) {
      // Forks could outrun the kills of a bare sandbox.
      if (this.#bare) forbidForks(this.cgroups);
      for (const pid of [...processesIn(this.cgroups), ...this.#strays()])
        this.kill(readProcessStat(pid));
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  /** Valid after `clear`. */
  causeOf(exitCode: number | null): Pick<Gone, 'outOfMemory'> {
    return exitCode !== null && signalOf(exitCode) === 'KILL' && this.#memoryRanOut
      ? { outOfMemory: true }
      : {};
  }

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

  kill(identity: ProcessIdentity | undefined): void {
    if (!identity) return;
    const key = `${this.#id}/${identity.pid}`;
    this.#deps.watcher.watch(key, identity, () => {});
    this.#deps.watcher.kill(key);
  }

  /** A bare sandbox without a cgroup has no other trace. */
  #strays(): readonly number[] {
    return this.#bare && this.cgroups.length === 0
      ? processesOfBare(this.#bare, this.#deps.uids !== undefined)
      : [];
  }
}
