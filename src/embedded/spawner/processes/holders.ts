import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { Deferred } from '../../../lib/deferred.ts';
import { afterReading } from '../after-reading.ts';
import type { LauncherPool } from '../launcher-pool.ts';
import { complaintOf } from '../complaint.ts';
import { holdOrder } from '../orders.ts';
import { publicMessage } from '../public-message.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import { isEnding } from '../sandbox/process-identity.ts';
import { environmentOf } from '../sandbox/rootfs.ts';
import type { SpawnerLog } from '../spawner-log.ts';
import { ENDED_PROCESSES, LIVE_PROCESSES } from './bounds.ts';
import { isTerminal } from './holder-socket.ts';
import { FIRST_BYTES, Holder, NotStarted, UNIT_BYTES, type HolderEvents } from './holder.ts';
import { MemoryShares } from './memory-shares.ts';
import { StartRefused, type ProcessRefusal, type ProcessStart } from './process-messages.ts';

const MOST_LIVE = 4_096;
const MOST_LIVE_OF_TENANT = 1_024;
/** A list returns the command lines of all. */
const MOST_COMMAND_BYTES = 4 << 20;
const LONGEST_COMMAND = (2 << 20) - 1_024;
/** A longer start is stuck, for example in a frozen sandbox. */
const START_DEADLINE_MS = 20_000;
/** A holder that is stuck in its start does not answer. */
const FOUND_WITHIN_MS = 2_000;

export interface HoldersDeps {
  readonly launchers: LauncherPool;
  readonly placeOf: (id: string) => JoinPlace | undefined;
  readonly folder: string;
  readonly lost: (id: string, why: string) => void;
  readonly log: Pick<SpawnerLog, 'warn'>;
  readonly shares?: MemoryShares;
  readonly startDeadlineMs?: number;
}

/**
 * Starts the holders of processes, and counts their memory. The next spawner finds them by their
 * sockets, `FOLDER/INSTANCE/PROCESS`.
 */
export class Holders {
  readonly #deps: HoldersDeps;
  readonly #shares: MemoryShares;
  readonly #startDeadlineMs: number;
  readonly #ofInstance = new Map<string, Map<string, Holder>>();
  readonly #liveOf = new Map<string, number>();
  #live = 0;

  constructor(deps: HoldersDeps) {
    this.#deps = deps;
    this.#shares = deps.shares ?? new MemoryShares();
    this.#startDeadlineMs = deps.startDeadlineMs ?? START_DEADLINE_MS;
  }

  /** Removes the sockets of other instances. */
  async adopt(ids: ReadonlySet<string>): Promise<void> {
    const { folder } = this.#deps;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const found: Promise<unknown>[] = [];
    for (const id of readdirSync(folder)) {
      if (ids.has(id))
        for (const processId of readdirSync(join(folder, id)))
          found.push(this.#adopt(id, processId));
      else this.forget(id);
    }
    let timer: NodeJS.Timeout | undefined;
    const tooLong = new Promise((resolve) => {
      timer = setTimeout(resolve, FOUND_WITHIN_MS);
    });
    await Promise.race([Promise.all(found), tooLong]);
    clearTimeout(timer);
  }

  /**
   * Resolves after the program runs; at once if the process exists already. Rejects with
   * StartRefused.
   */
  async start(id: string, order: ProcessStart): Promise<void> {
    try {
      await this.#inTime(this.#findLate(id, order));
      const known = this.#known(id, order);
      if (known) await this.#inTime(known.started);
      else await (await this.#beginWithRoom(id, order)).started;
    } catch (error) {
      throw error instanceof StartRefused
        ? error
        : new StartRefused(this.#refusalOf(id, order, error));
    }
  }

  /** The holder may still run its process. */
  async #inTime(started: Promise<void>): Promise<void> {
    const late = new Deferred<void>();
    const callOff = afterReading(this.#startDeadlineMs, () => late.reject(new NotStarted('')));
    try {
      await Promise.race([started, late.promise]);
    } finally {
      callOff();
    }
  }

  forget(id: string): void {
    try {
      rmSync(join(this.#deps.folder, id), { recursive: true, force: true });
    } catch {
      // A holder has just begun to listen. The next spawner removes the folder.
    }
  }

  stop(): void {
    for (const holders of this.#ofInstance.values())
      for (const holder of holders.values()) holder.leave();
  }

  /** The holder may have begun to listen only after `adopt`. */
  async #findLate(id: string, order: ProcessStart): Promise<void> {
    const { processId } = order;
    if (this.#known(id, order) || !existsSync(join(this.#deps.folder, id, processId))) return;
    await this.#adopt(id, processId);
  }

  #known(id: string, { processId }: ProcessStart): Holder | undefined {
    return this.#ofInstance.get(id)?.get(processId);
  }

  /** Pending reports of holders may free a place. */
  async #beginWithRoom(id: string, order: ProcessStart): Promise<Holder> {
    try {
      return this.#begin(id, order);
    } catch (error) {
      if (!(error instanceof StartRefused) || error.refusal.kind !== 'full') throw error;
    }
    await new Promise((resolve) => setImmediate(resolve));
    return this.#known(id, order) ?? this.#begin(id, order);
  }

  #begin(id: string, order: ProcessStart): Holder {
    const place = this.#deps.placeOf(id);
    if (!place) throw new StartRefused(NOT_RUNNING);
    const commandBytes = Buffer.byteLength(order.told);
    this.#requireRoom(id, order, commandBytes);
    let child: ChildProcess | undefined;
    try {
      const folder = join(this.#deps.folder, id);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const bytes = orderOf(place, folder, order);
      child = this.#deps.launchers.take({ withInput: false });
      const holder = attended(child, { folder, processId: order.processId }, this.#eventsOf(id));
      holder.tenant = order.tenant;
      holder.bytes = FIRST_BYTES + commandBytes;
      holder.commandBytes = commandBytes;
      this.#keep(id, holder);
      this.#countLive(order.tenant, 1);
      give(child, bytes);
      this.#logFailure({ id, order, child, holder });
      this.#endIfItStandsStill(child, holder);
      return holder;
    } catch (error) {
      child?.kill('SIGKILL');
      this.#shares.release(order.tenant, FIRST_BYTES + commandBytes);
      throw new StartRefused({ kind: 'not-joinable', message: publicMessage(error) });
    }
  }

  #logFailure({ id, order, child, holder }: Beginning): void {
    const complaint = complaintOf(child);
    child.once('close', () => {
      holder.started.catch((failure: unknown) => {
        const { kind } = this.#refusalOf(id, order, failure);
        if (complaint() !== '' && kind === 'not-joinable')
          this.#deps.log.warn('process-not-started', { id, error: complaint() });
      });
    });
  }

  #endIfItStandsStill(child: ChildProcess, holder: Holder): void {
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      child.stderr?.destroy();
      holder.giveUp();
    }, this.#startDeadlineMs);
    const callOff = (): void => clearTimeout(deadline);
    holder.started.then(callOff, callOff);
  }

  /** If descriptors run out, the holder runs uncounted. */
  async #adopt(id: string, processId: string): Promise<void> {
    const place = { folder: join(this.#deps.folder, id), processId };
    try {
      const holder = Holder.found(place, this.#eventsOf(id));
      this.#keep(id, holder);
      await holder.started;
    } catch {}
  }

  #keep(id: string, holder: Holder): void {
    const known = this.#ofInstance.get(id) ?? new Map<string, Holder>();
    this.#ofInstance.set(id, known.set(holder.place.processId, holder));
  }

  #eventsOf(id: string): HolderEvents {
    return {
      take: (holder) => {
        if (this.#shares.take(holder.tenant ?? '', UNIT_BYTES) !== undefined) return false;
        holder.bytes += UNIT_BYTES;
        return true;
      },
      found: (holder, units) => {
        holder.bytes = FIRST_BYTES + holder.commandBytes + (units - 1) * UNIT_BYTES;
        this.#shares.count(holder.tenant ?? '', holder.bytes);
        if (holder.isLive) this.#countLive(holder.tenant ?? '', 1);
      },
      ended: (holder) => {
        this.#countLive(holder.tenant ?? '', -1);
        this.#forgetOldest(id);
      },
      gone: (holder, lost) => this.#gone(id, holder, lost),
    };
  }

  #gone(id: string, holder: Holder, lost: boolean): void {
    this.#release(holder);
    if (holder.isLive && holder.tenant !== undefined) this.#countLive(holder.tenant, -1);
    const known = this.#ofInstance.get(id);
    known?.delete(holder.place.processId);
    if (known?.size === 0) this.#ofInstance.delete(id);
    if (!lost || isTerminal(holder.place.processId) || this.#isOver(id)) return;
    this.#deps.lost(id, 'the process that held one of them was killed');
  }

  #isOver(id: string): boolean {
    const place = this.#deps.placeOf(id);
    return !place || isEnding(place.init);
  }

  /** Drops the processes that ended first to make room. */
  #requireRoom(id: string, { tenant, bound }: ProcessStart, commandBytes: number): void {
    const of = this.#of(id);
    const live = of.filter(({ isLive, place }) => isLive && !isTerminal(place.processId));
    if (commandBytes > LONGEST_COMMAND)
      throw new StartRefused({ kind: 'refused', field: 'command', message: 'it is too long' });
    if (live.length >= LIVE_PROCESSES && !bound)
      throw full('sandbox', `the sandbox has ${LIVE_PROCESSES} processes, which is the maximum`);
    if (sumOf(live) + commandBytes > MOST_COMMAND_BYTES)
      throw full('sandbox', 'the commands of its processes have the maximum total length');
    if ((this.#liveOf.get(tenant) ?? 0) >= MOST_LIVE_OF_TENANT)
      throw full('tenant', `you have ${MOST_LIVE_OF_TENANT} processes, which is the maximum`);
    if (this.#live >= MOST_LIVE)
      throw full('machine', 'the machine runs the maximum number of processes for sandboxes');
    this.#takeFirst(tenant, commandBytes);
    const ended = endedOf(of);
    for (let sum = sumOf(of) + commandBytes; sum > MOST_COMMAND_BYTES;) {
      const oldest = ended.shift();
      if (!oldest) return;
      sum -= oldest.commandBytes;
      this.#drop(oldest);
    }
  }

  #takeFirst(tenant: string, commandBytes: number): void {
    const bytes = FIRST_BYTES + commandBytes;
    let met = this.#shares.take(tenant, bytes);
    if (!met) return;
    const all = [...this.#ofInstance.keys()].flatMap((id) => this.#of(id));
    for (const oldest of endedOf(all.filter((each) => each.tenant === tenant))) {
      this.#drop(oldest);
      met = this.#shares.take(tenant, bytes);
      if (!met) return;
    }
    throw full(met, 'the output of processes uses all the memory for it');
  }

  #forgetOldest(id: string): void {
    const ended = endedOf(this.#of(id));
    for (const oldest of ended.slice(0, Math.max(0, ended.length - ENDED_PROCESSES)))
      this.#drop(oldest);
  }

  /** Counts its memory as free from now on. */
  #drop(holder: Holder): void {
    this.#release(holder);
    holder.forget();
  }

  #release(holder: Holder): void {
    this.#shares.release(holder.tenant ?? '', holder.bytes);
    holder.bytes = 0;
  }

  #countLive(tenant: string, more: 1 | -1): void {
    this.#live += more;
    const own = (this.#liveOf.get(tenant) ?? 0) + more;
    if (own > 0) this.#liveOf.set(tenant, own);
    else this.#liveOf.delete(tenant);
  }

  #of(id: string): readonly Holder[] {
    return [...(this.#ofInstance.get(id)?.values() ?? [])];
  }

  #refusalOf(id: string, { cwd }: ProcessStart, error: unknown): ProcessRefusal {
    const word = error instanceof NotStarted ? error.refusal : '';
    if (word === 'no-folder') return noFolder(cwd ?? this.#deps.placeOf(id)?.workingDir ?? '');
    if (word === 'no-terminal') return NO_TERMINAL;
    if (this.#isOver(id)) return NOT_RUNNING;
    return {
      kind: 'not-joinable',
      message: 'the sandbox starts no processes; it may be paused',
    };
  }
}

interface Beginning {
  readonly id: string;
  readonly order: ProcessStart;
  readonly child: ChildProcess;
  readonly holder: Holder;
}

const NOT_RUNNING: ProcessRefusal = {
  kind: 'instance-gone',
  message: 'the sandbox is not running',
};
const noFolder = (path: string): ProcessRefusal => ({
  kind: 'refused',
  field: 'cwd',
  message: `the folder ${path} does not exist in the sandbox, or its user cannot open it`,
});
const NO_TERMINAL: ProcessRefusal = {
  kind: 'refused',
  field: 'tty',
  message: 'all terminals are in use',
};

const full = (of: 'sandbox' | 'tenant' | 'machine', message: string): StartRefused =>
  new StartRefused({ kind: 'full', of, message });

/** Earliest end first. */
const endedOf = (holders: readonly Holder[]): Holder[] =>
  holders
    .filter(({ isLive, bytes }) => !isLive && bytes > 0)
    .sort((one, other) => one.endedAt - other.endedAt);

const sumOf = (holders: readonly Holder[]): number =>
  holders.reduce((sum, { commandBytes }) => sum + commandBytes, 0);

const orderOf = (place: JoinPlace, folder: string, start: ProcessStart): Buffer =>
  holdOrder({
    init: place.init,
    user: place.user,
    bare: place.bare,
    cgroups: place.cgroups,
    cwd: start.cwd ?? place.workingDir,
    env: environmentOf(place.env, start.tty ? { TERM: 'xterm-256color' } : {}, start.env ?? {}),
    argv: start.argv,
    folder,
    processId: start.processId,
    told: start.told,
    input: start.stdin,
    tty: start.tty,
    timeoutMs: start.timeoutMs,
    bound: start.bound,
  });

/** The holder reads its order from descriptor 3, which stays its connection. */
const attended = (
  child: ChildProcess,
  place: { readonly folder: string; readonly processId: string },
  events: HolderEvents,
): Holder => {
  const socket = child.stdio[3];
  if (!(socket instanceof Duplex)) throw new Error('it has no socket');
  child.once('error', () => socket.destroy());
  child.unref();
  return new Holder(place, socket, events);
};

const give = (child: ChildProcess, order: Buffer): void => {
  const socket = child.stdio[3];
  if (!(socket instanceof Duplex)) return;
  const length = Buffer.alloc(4);
  length.writeUInt32BE(order.length);
  socket.write(Buffer.concat([length, order]));
};
