import type { ClaimChange } from '../../../src/model/claim-change.ts';
import { Duplex, PassThrough } from 'node:stream';
import type { SandboxFiles } from '../../../src/contracts/files.ts';
import {
  DefinitionRefused,
  InstanceGone,
  LeaseLost,
  PortUnreachable,
  type DriverDescription,
  type ExecOutcome,
  type ExecRequest,
  type LogBatch,
  type LogFollowing,
  type LogRequest,
  type LogTail,
  type ProbeOutcome,
  type SandboxDriver,
  type Terminal,
  type TerminalRequest,
} from '../../../src/contracts/sandbox-driver.ts';
import { refuseKubernetesFields } from '../../../src/embedded/driver/check-definition.ts';
import type { InstanceRecords } from '../../../src/embedded/store/instance-records.ts';
import type { InstanceId, Revision } from '../../../src/model/identifiers.ts';
import type {
  LaunchOrder,
  Claim,
  End,
  Gone,
  InstanceFact,
  InstanceRecord,
  StartHindrance,
  Vitals,
} from '../../../src/model/sandbox.ts';
import type { InstanceDefinition } from '../../../src/model/templates/template.ts';
import type { ProcessDriver } from '../../../src/contracts/processes.ts';
import { FakeProcesses } from './fake-processes.ts';
import { MemoryInstanceRecords } from './memory-instance-records.ts';
import { MemoryFiles } from './memory-files.ts';
import { MemoryLogs } from './memory-logs.ts';

type Operation =
  | 'launch'
  | 'claim'
  | 'amend'
  | 'bump'
  | 'retire'
  | 'release'
  | 'forget'
  | 'read'
  | 'exec'
  | 'attach'
  | 'logs'
  | 'dial'
  | 'probe';

export interface FakeDriverOptions {
  /** By default; else they wait for `becomeAvailable`. */
  readonly startsByItself?: boolean;
  /** By default; else they wait for `end`. */
  readonly endsByItself?: boolean;
  /** A retired instance reports it with this grace, like a cluster's Pod, and waits for `end`. */
  readonly graceMs?: number;
  /** The driver's own writes come as facts too, as in a cluster's watch. */
  readonly reportsWrites?: boolean;
  readonly now?: () => number;
  /** Besides `host`. */
  readonly images?: readonly string[];
  /** Shared by two drivers, they simulate a restart. */
  readonly records?: InstanceRecords & Pick<MemoryInstanceRecords, 'failNext'>;
}

/**
 * A working driver without processes. Facts come on a later turn of the event loop. Faults:
 * `records.failNext` for conflicts and unknown outcomes, `failNext` for any error, `hold` and
 * `letGo` for slowness. Runs `true`, `false`, `echo`, `cat` and an echoing terminal; a main process
 * may be `echo` or `echo-server PORT`.
 */
export class FakeSandboxDriver implements SandboxDriver {
  processes: ProcessDriver = new FakeProcesses({ mustRun: (id) => this.#mustRun(id) });
  readonly records: InstanceRecords & Pick<MemoryInstanceRecords, 'failNext'>;
  /** As `operation id`, in order. */
  readonly calls: string[] = [];
  description: DriverDescription = {
    isolation: 'fake',
    pauses: true,
    warnings: [],
    problems: [],
  };
  onExec: (
    id: InstanceId,
    request: ExecRequest,
    signal: AbortSignal,
  ) => Promise<Partial<ExecOutcome>> = async (_id, request) => pretend(request);
  readonly terminals: FakeTerminal[] = [];
  startsByItself: boolean;
  /** Awaited between a launch's record and its process, for a crash there. */
  betweenWrites: (() => Promise<void>) | undefined;
  /** Results of probes. */
  probes: (id: InstanceId) => readonly ProbeOutcome[] = () => [];
  readonly logged = new MemoryLogs();
  files: SandboxFiles = new MemoryFiles((id) => this.#mustRun(id));

  readonly #options: FakeDriverOptions;
  readonly #now: () => number;
  readonly #vitals = new Map<InstanceId, Vitals>();
  readonly #argv = new Map<InstanceId, readonly string[]>();
  readonly #connections = new Set<{ readonly id: InstanceId; readonly connection: Duplex }>();
  readonly #errors = new Map<Operation, Error[]>();
  readonly #held = new Map<
    Operation,
    { readonly released: Promise<void>; readonly letGo: () => void }
  >();
  #report: ((fact: InstanceFact) => void) | undefined;
  #facts: Promise<void> = Promise.resolve();

  constructor(options: FakeDriverOptions = {}) {
    this.#options = options;
    this.startsByItself = options.startsByItself ?? true;
    this.#now = options.now ?? Date.now;
    this.records = options.records ?? new MemoryInstanceRecords();
  }

  /** The call has no effect. */
  failNext(operation: Operation, error: Error): void {
    this.#errors.set(operation, [...(this.#errors.get(operation) ?? []), error]);
  }

  heal(operation: Operation): void {
    this.#errors.delete(operation);
  }

  hold(operation: Operation): void {
    this.#held.set(operation, aGate());
  }

  letGo(operation: Operation): void {
    this.#held.get(operation)?.letGo();
    this.#held.delete(operation);
  }

  /** `noted`: with its time, as in a cluster. */
  becomeAvailable(id: InstanceId, noted: { readonly since?: number } = {}): void {
    this.#set(id, { kind: 'available', startedAt: this.#startedAt(id), ...noted });
  }

  findNoPlace(id: InstanceId, reason = 'no place'): void {
    this.hinder(id, 'Unschedulable', reason);
  }

  hinder(id: InstanceId, hindrance: StartHindrance, reason: string): void {
    this.#set(id, { kind: 'starting', reason, hindrance });
  }

  becomeUnavailable(
    id: InstanceId,
    reason = 'not answering',
    noted: Pick<
      Extract<Vitals, { kind: 'unavailable' }>,
      'since' | 'nodeInTrouble' | 'nodeLeaving'
    > = {},
  ): void {
    this.#set(id, { kind: 'unavailable', startedAt: this.#startedAt(id), reason, ...noted });
  }

  loseContainer(id: InstanceId, name: string, how: string): void {
    this.#set(id, {
      kind: 'unavailable',
      startedAt: this.#startedAt(id),
      reason: `${name} ended`,
      endedContainers: { [name]: how },
    });
  }

  /** The process ends. */
  end(
    id: InstanceId,
    exitCode: number | null = 0,
    reason = 'the main process exited',
    more: Pick<Gone, 'outOfMemory'> = {},
  ): void {
    for (const terminal of this.terminals.filter((candidate) => candidate.instance === id))
      terminal.close();
    for (const held of this.#connections)
      if (held.id === id) {
        held.connection.destroy();
        this.#connections.delete(held);
      }
    this.#vitals.delete(id);
    this.logged.changed();
    this.#later(id, { kind: 'gone', exitCode, reason, ...more });
  }

  /** Resolves once all facts so far were reported. */
  settled(): Promise<void> {
    return this.#facts;
  }

  running(): readonly InstanceId[] {
    return [...this.#vitals].flatMap(([id, vitals]) => (vitals === UNLAUNCHED ? [] : [id]));
  }

  describe(): DriverDescription {
    return this.description;
  }

  async watch(report: (fact: InstanceFact) => void): Promise<void> {
    this.#report = report;
    const all = await this.records.all();
    const known = new Set(all.map(({ record }) => record.id));
    for (const { record } of all)
      report({ id: record.id, record, vitals: this.#vitalsOf(record.id) });
    for (const id of this.#vitals.keys()) if (!known.has(id)) this.#vitals.delete(id);
  }

  expect(): void {}

  check(definition: InstanceDefinition): void {
    refuseKubernetesFields(definition);
    if (definition.containers.length !== 1)
      throw new DefinitionRefused('spec.containers: exactly one is supported');
    const [container] = definition.containers;
    if (!container || !['host', ...(this.#options.images ?? [])].includes(container.image))
      throw new DefinitionRefused('spec.containers[0].image: only host is supported');
    const { cpuCores, memoryBytes } = container;
    if (cpuCores > 256)
      throw new DefinitionRefused('spec.containers[0].resources.limits.cpu: this machine has 256');
    if (memoryBytes > 2 ** 42)
      throw new DefinitionRefused(
        'spec.containers[0].resources.limits.memory: this machine has 4Ti',
      );
  }

  async launch(order: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord> {
    const { id } = order.record;
    await this.#enter('launch', id);
    if (!permitted()) throw new LeaseLost('another replica launches');
    this.check(order.definition);
    const record = await this.#born(order);
    this.#argv.set(id, order.definition.containers[0]?.argv ?? []);
    if (this.betweenWrites && !this.#vitals.has(id)) {
      this.#set(id, UNLAUNCHED);
      await this.betweenWrites();
      if (!permitted()) throw new LeaseLost('another replica launches');
      if (!(await this.records.read(id))) return record; // what has no record is collected
    }
    if (!this.#vitals.has(id) || this.#vitals.get(id) === UNLAUNCHED) {
      this.#set(id, { kind: 'starting' });
      if (this.startsByItself) this.becomeAvailable(id);
      this.#echo(id, order.definition);
    }
    return record;
  }

  /** A repeated launch gets the existing record, even during the first. */
  async #born({ record, definition }: LaunchOrder): Promise<InstanceRecord> {
    const known = async (): Promise<InstanceRecord | undefined> =>
      (await this.records.read(record.id))?.record;
    return (
      (await known()) ??
      (await this.records.launchOrder(record, definition).catch(async (error: unknown) => {
        const there = await known();
        if (!there) throw error;
        return there;
      }))
    );
  }

  async claim(
    seen: InstanceRecord,
    claim: Claim,
    permitted: () => boolean = () => true,
  ): Promise<InstanceRecord> {
    await this.#enter('claim', seen.id);
    if (!permitted()) throw new LeaseLost('not sent in time');
    return this.#written(await this.records.claim(seen, claim));
  }

  async amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    await this.#enter('amend', id);
    return this.#written(await this.records.amend(id, change, seen));
  }

  async bump(id: InstanceId, seen: Revision): Promise<InstanceRecord> {
    await this.#enter('bump', id);
    return this.#written(await this.records.bump(id, seen));
  }

  async retire(id: InstanceId, seen: Revision): Promise<void> {
    await this.#enter('retire', id);
    await this.records.retire(id, seen);
    this.#endByItself(id);
  }

  async release(id: InstanceId, end: End): Promise<void> {
    await this.#enter('release', id);
    const record = await this.records.release(id, end);
    if (record) this.#written(record);
    this.#endByItself(id);
  }

  async forget(id: InstanceId): Promise<void> {
    await this.#enter('forget', id);
    await this.records.forget(id);
  }

  async read(id: InstanceId): Promise<InstanceFact> {
    await this.#enter('read', id);
    const stored = await this.records.read(id);
    return { id, record: stored?.record, vitals: this.#vitalsOf(id) };
  }

  async confirm(): Promise<undefined> {}

  async idle(
    ..._of: [poolUid: string, namespace: string, atLeast: number]
  ): Promise<readonly InstanceFact[]> {
    return [];
  }

  async findClaimByKey(): Promise<readonly InstanceFact[]> {
    return [];
  }

  async caughtUp(): Promise<void> {}

  async exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    await this.#enter('exec', id);
    signal.throwIfAborted();
    this.#mustRun(id);
    const outcome = await this.onExec(id, request, signal);
    for (const bytes of [outcome.stdout, outcome.stderr]) if (bytes) request.gathered?.(bytes);
    return {
      stdout: Buffer.alloc(0),
      stderr: Buffer.alloc(0),
      exitCode: 0,
      timedOut: false,
      truncated: false,
      durationMs: 1,
      ...outcome,
    };
  }

  async attach(id: InstanceId, request: TerminalRequest): Promise<Terminal> {
    await this.#enter('attach', id);
    this.#mustRun(id);
    const terminal = new FakeTerminal(id, request);
    this.terminals.push(terminal);
    return terminal;
  }

  async logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    await this.#enter('logs', id);
    return this.logged.tail(id, request);
  }

  followLogs(
    id: InstanceId,
    { after }: LogFollowing,
    signal: AbortSignal,
  ): AsyncIterable<LogBatch> {
    return this.logged.follow(id, after, { signal, ended: () => !this.#vitals.has(id) });
  }

  async probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    await this.#enter('probe', id);
    this.#mustRun(id);
    return this.probes(id);
  }

  async dial(id: InstanceId, port: number, signal: AbortSignal): Promise<Duplex> {
    await this.#enter('dial', id);
    signal.throwIfAborted();
    this.#mustRun(id);
    const [program, listening] = this.#argv.get(id) ?? [];
    if (program !== 'echo-server' || listening !== String(port))
      throw new PortUnreachable(`port ${port}: nothing listens on it`);
    const connection = new PassThrough();
    this.#connections.add({ id, connection });
    return connection;
  }

  async stop(): Promise<void> {
    this.#report = undefined;
    for (const terminal of this.terminals.splice(0)) terminal.close(null);
  }

  async #enter(operation: Operation, id: InstanceId): Promise<void> {
    this.calls.push(`${operation} ${id}`);
    await this.#held.get(operation)?.released;
    const error = this.#errors.get(operation)?.shift();
    if (error) throw error;
  }

  #echo(id: InstanceId, { containers: [main] }: InstanceDefinition): void {
    if (main?.argv[0] !== 'echo') return;
    this.logged.print(id, `${main.argv.slice(1).join(' ')}\n`);
    this.end(id, 0);
  }

  #mustRun(id: InstanceId): void {
    const vitals = this.#vitalsOf(id);
    if (vitals.kind !== 'available' && vitals.kind !== 'unavailable')
      throw new InstanceGone(`${id} is not running`);
  }

  #endByItself(id: InstanceId): void {
    if (!this.#vitals.has(id)) return;
    const { graceMs, endsByItself = true } = this.#options;
    if (graceMs !== undefined)
      this.#set(id, {
        kind: 'unavailable',
        startedAt: this.#startedAt(id),
        reason: 'its Pod is being deleted',
        endsBy: this.#now() + graceMs,
      });
    else if (endsByItself) this.end(id, 137, 'killed');
  }

  #written(record: InstanceRecord): InstanceRecord {
    if (this.#options.reportsWrites) this.#later(record.id, this.#vitalsOf(record.id));
    return record;
  }

  #vitalsOf(id: InstanceId): Vitals {
    return this.#vitals.get(id) ?? { kind: 'gone', exitCode: null, reason: 'no such process' };
  }

  #startedAt(id: InstanceId): number {
    const vitals = this.#vitals.get(id);
    return vitals && 'startedAt' in vitals ? vitals.startedAt : this.#now();
  }

  #set(id: InstanceId, vitals: Vitals): void {
    this.#vitals.set(id, vitals);
    this.#later(id, vitals);
  }

  #later(id: InstanceId, vitals: Vitals): void {
    this.#facts = this.#facts.then(async () => {
      const stored = await this.records.read(id);
      this.#report?.({ id, record: stored?.record, vitals });
    });
  }
}

/** `\x04` (end of input) ends it with 0. */
export class FakeTerminal implements Terminal {
  readonly instance: InstanceId;
  readonly argv: readonly string[];
  readonly stream: Duplex;
  readonly exit: Promise<number | null>;
  readonly signals: string[] = [];
  size: { readonly cols: number; readonly rows: number };
  readonly #exited: (exitCode: number | null) => void;

  constructor(instance: InstanceId, request: TerminalRequest) {
    this.instance = instance;
    this.argv = request.argv;
    this.size = { cols: request.cols, rows: request.rows };
    let exited: (exitCode: number | null) => void = () => {};
    this.exit = new Promise((resolve) => {
      exited = resolve;
    });
    this.#exited = exited;
    let resume: (() => void) | undefined;
    this.stream = new Duplex({
      read: () => {
        resume?.();
        resume = undefined;
      },
      write: (chunk: Buffer, _encoding, done) => {
        if (chunk.includes(4)) this.close(0);
        else if (this.stream.push(chunk)) done();
        else resume = done;
      },
    });
  }

  resize(cols: number, rows: number): void {
    this.size = { cols, rows };
  }

  signal(name: string): void {
    this.signals.push(name);
  }

  close(exitCode: number | null = 129): void {
    if (!this.stream.readableEnded && !this.stream.destroyed) this.stream.push(null);
    this.#exited(exitCode);
  }
}

const UNLAUNCHED: Vitals = { kind: 'starting', reason: 'it was not launched', unlaunched: true };

const pretend = async (request: ExecRequest): Promise<Partial<ExecOutcome>> => {
  const [command, ...args] = request.argv;
  if (command === 'true') return {};
  if (command === 'false') return { exitCode: 1 };
  if (command === 'echo') return { stdout: Buffer.from(`${args.join(' ')}\n`) };
  if (command === 'cat') return { stdout: Buffer.from(request.stdin ?? '') };
  return { exitCode: 127, stderr: Buffer.from(`${command}: not found\n`) };
};

const aGate = (): { readonly released: Promise<void>; readonly letGo: () => void } => {
  let letGo: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  return { released, letGo };
};
