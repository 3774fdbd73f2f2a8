import type { ProcessFact } from '../../../model/process.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import { publicMessage } from '../public-message.ts';
import { ENDED_FOR_MS, ENDED_PROCESSES, LIVE_PROCESSES } from './bounds.ts';
import type { CommandDeps } from './command.ts';
import { FIRST_BYTES } from './output-ring.ts';
import { CallRefused, type ProcessStart } from './process-messages.ts';
import { SandboxProcess } from './sandbox-process.ts';

/** Live ones of all sandboxes, so that descriptors do not run out, and of one tenant. */
const MOST_LIVE = 4_096;
const MOST_LIVE_OF_TENANT = 1_024;
/** Bytes of the commands of one sandbox's processes, which are told in one list. */
const MOST_COMMAND_BYTES = 4 << 20;

export interface ProcessesDeps extends CommandDeps {
  readonly placeOf: (id: string) => JoinPlace | undefined;
  readonly now: () => number;
  /** The first process of an instance runs, or the last one has ended. */
  readonly run: (id: string, runs: boolean) => void;
  /** Calls back after so long; returns what calls it off. */
  readonly later: (milliseconds: number, act: () => void) => () => void;
  readonly shares?: MemoryShares;
}

/**
 * All processes of all sandboxes, live and ended. They belong to no connection: a daemon that comes
 * finds them, with what they printed.
 */
export class Processes {
  readonly #deps: ProcessesDeps;
  readonly #shares: MemoryShares;
  readonly #ofInstance = new Map<string, Map<string, SandboxProcess>>();
  /** Calls off the time at which one that ended is forgotten. */
  readonly #forgetting = new Map<SandboxProcess, () => void>();
  readonly #liveOf = new Map<string, number>();
  #live = 0;

  constructor(deps: ProcessesDeps) {
    this.#deps = deps;
    this.#shares = deps.shares ?? new MemoryShares();
  }

  /** Resolves once the program runs or never will; the one that is there, where it is. */
  async start(id: string, order: ProcessStart): Promise<ProcessFact> {
    const process = this.#ofInstance.get(id)?.get(order.processId) ?? this.#begin(id, order);
    try {
      await process.started;
    } catch (error) {
      this.#drop(id, process);
      throw error;
    }
    return process.fact;
  }

  /** The latest start first. */
  list(id: string): readonly ProcessFact[] {
    this.#placeOf(id);
    return [...(this.#ofInstance.get(id)?.values() ?? [])].map(({ fact }) => fact).reverse();
  }

  find(id: string, processId: string): SandboxProcess | undefined {
    const process = this.#ofInstance.get(id)?.get(processId);
    if (!process) this.#placeOf(id);
    return process;
  }

  /** Throws CallRefused where there is none. */
  get(id: string, processId: string): SandboxProcess {
    const process = this.find(id, processId);
    if (process) return process;
    throw new CallRefused({ kind: 'gone', message: 'there is no such process' });
  }

  /** Resolves once it has ended. */
  async remove(id: string, processId: string): Promise<void> {
    const process = this.get(id, processId);
    process.kill();
    await process.over;
    this.#drop(id, process);
  }

  /** The instance is gone, and what ran in it. */
  forget(id: string): void {
    for (const process of [...(this.#ofInstance.get(id)?.values() ?? [])]) {
      process.kill();
      this.#drop(id, process);
    }
  }

  /** Counts those that have not ended, of all sandboxes. */
  get live(): number {
    return this.#live;
  }

  /** Ends all of them. */
  stop(): void {
    for (const id of [...this.#ofInstance.keys()]) this.forget(id);
  }

  #begin(id: string, order: ProcessStart): SandboxProcess {
    const place = this.#placeOf(id);
    const commandBytes = bytesOf(order);
    this.#requireRoom(id, order.tenant, commandBytes);
    const { tenant } = order;
    const memory = {
      take: (bytes: number) => this.#shares.take(tenant, bytes) === undefined,
      release: (bytes: number) => this.#shares.release(tenant, bytes),
    };
    let process: SandboxProcess;
    try {
      process = new SandboxProcess(place, order, {
        launchers: this.#deps.launchers,
        launcherPath: this.#deps.launcherPath,
        now: this.#deps.now,
        memory,
        commandBytes,
        ended: () => this.#ended(id, process),
      });
    } catch (error) {
      this.#shares.release(tenant, FIRST_BYTES + commandBytes);
      throw new CallRefused({ kind: 'not-joinable', message: publicMessage(error) });
    }
    const known = this.#ofInstance.get(id) ?? new Map<string, SandboxProcess>();
    if (!someLive(known)) this.#deps.run(id, true);
    this.#ofInstance.set(id, known.set(order.processId, process));
    this.#countLive(tenant, 1);
    return process;
  }

  /** Takes the memory that each has. What ended longest ago makes room for what starts. */
  #requireRoom(id: string, tenant: string, commandBytes: number): void {
    const live = [...(this.#ofInstance.get(id)?.values() ?? [])].filter(({ isLive }) => isLive);
    if (live.length >= LIVE_PROCESSES)
      throw full('sandbox', `the sandbox has ${LIVE_PROCESSES} processes, which is the most`);
    if (sumOf(live) + commandBytes > MOST_COMMAND_BYTES)
      throw full('sandbox', 'the commands of its processes are as long together as they may be');
    if ((this.#liveOf.get(tenant) ?? 0) >= MOST_LIVE_OF_TENANT)
      throw full('tenant', `you have ${MOST_LIVE_OF_TENANT} processes, which is the most`);
    if (this.#live >= MOST_LIVE)
      throw full('machine', 'the machine runs as many processes for sandboxes as it may');
    const met = this.#shares.take(tenant, FIRST_BYTES + commandBytes);
    if (met) throw full(met, 'what processes printed takes as much memory as it may');
    const ended = this.#endedOf(id);
    while (ended.length > 0 && sumOf([...live, ...ended]) + commandBytes > MOST_COMMAND_BYTES)
      for (const oldest of ended.splice(0, 1)) this.#drop(id, oldest);
  }

  #countLive(tenant: string, more: 1 | -1): void {
    this.#live += more;
    const own = (this.#liveOf.get(tenant) ?? 0) + more;
    if (own > 0) this.#liveOf.set(tenant, own);
    else this.#liveOf.delete(tenant);
  }

  /** The one that ended longest ago is first. */
  #endedOf(id: string): SandboxProcess[] {
    return [...(this.#ofInstance.get(id)?.values() ?? [])]
      .filter(({ isLive }) => !isLive)
      .sort((one, other) => (one.endedAt ?? 0) - (other.endedAt ?? 0));
  }

  #ended(id: string, process: SandboxProcess): void {
    this.#countLive(process.order.tenant, -1);
    if (!someLive(this.#ofInstance.get(id))) this.#deps.run(id, false);
    const ended = this.#endedOf(id);
    for (const oldest of ended.slice(0, Math.max(0, ended.length - ENDED_PROCESSES)))
      this.#drop(id, oldest);
    if (this.#ofInstance.get(id)?.get(process.order.processId) === process)
      this.#forgetting.set(
        process,
        this.#deps.later(ENDED_FOR_MS, () => this.#drop(id, process)),
      );
  }

  #drop(id: string, process: SandboxProcess): void {
    const known = this.#ofInstance.get(id);
    if (known?.get(process.order.processId) !== process) return;
    known.delete(process.order.processId);
    if (known.size === 0) this.#ofInstance.delete(id);
    this.#forgetting.get(process)?.();
    this.#forgetting.delete(process);
    process.forget();
  }

  #placeOf(id: string): JoinPlace {
    const place = this.#deps.placeOf(id);
    if (!place)
      throw new CallRefused({ kind: 'instance-gone', message: 'the sandbox is not running' });
    return place;
  }
}

/** Returns how many bytes are told of a command. */
const bytesOf = ({ argv, tag }: ProcessStart): number =>
  Buffer.byteLength(JSON.stringify({ argv, tag }));

const someLive = (processes: ReadonlyMap<string, SandboxProcess> | undefined): boolean =>
  [...(processes?.values() ?? [])].some(({ isLive }) => isLive);

const sumOf = (processes: readonly SandboxProcess[]): number =>
  processes.reduce((sum, { commandBytes }) => sum + commandBytes, 0);

const full = (of: 'sandbox' | 'tenant' | 'machine', message: string): CallRefused =>
  new CallRefused({ kind: 'full', of, message });

/** Memory of kept output: of one tenant, and of all together. */
const MOST_OF_TENANT = 256 << 20;
const MOST_OF_ALL = 1 << 30;

/** Counts the memory of what processes printed by tenant, before it is taken. */
export class MemoryShares {
  readonly #ofTenant = new Map<string, number>();
  readonly #bounds: { readonly tenant: number; readonly all: number };
  #all = 0;

  constructor(bounds = { tenant: MOST_OF_TENANT, all: MOST_OF_ALL }) {
    this.#bounds = bounds;
  }

  /** Returns whose share is met; undefined where the bytes are taken. */
  take(tenant: string, bytes: number): 'tenant' | 'machine' | undefined {
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (own > this.#bounds.tenant) return 'tenant';
    if (this.#all + bytes > this.#bounds.all) return 'machine';
    this.#ofTenant.set(tenant, own);
    this.#all += bytes;
    return undefined;
  }

  release(tenant: string, bytes: number): void {
    this.#all -= bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) - bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }
}
