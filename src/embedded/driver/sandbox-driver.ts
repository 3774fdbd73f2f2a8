import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import {
  LeaseLost,
  NoPlace,
  OutcomeUnknown,
  RecordConflict,
  type DriverDescription,
  type ExecOutcome,
  type ExecRequest,
  type LogBatch,
  type LogFollowing,
  type LogRequest,
  type LogTail,
  type PortConnection,
  type ProbeOutcome,
  type SandboxDriver,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import type { ClaimChange } from '../../model/claim-change.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type {
  LaunchOrder,
  Claim,
  End,
  InstanceFact,
  InstanceRecord,
  Vitals,
} from '../../model/sandbox.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import { checkDefinition, thisMachine, type MachineSize } from './check-definition.ts';
import { withImageConfig } from '../images/image-command.ts';
import { Images } from '../images/images.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import { EmbeddedFiles } from './files/embedded-files.ts';
import { LaunchTurns } from './launch-turns.ts';
import { LogFiles } from './log-files.ts';
import { Pauses } from './pauses.ts';
import { Ports } from './ports.ts';
import { EmbeddedProcesses } from './processes.ts';
import {
  pathsOf,
  type InstanceReport,
  type SpawnerConfig,
  type StartTerms,
} from '../spawner/protocol.ts';
import { startFailure } from '../spawner/public-message.ts';
import { SpawnerClient } from './spawner-client.ts';
import { checkPrograms } from './spawner-process.ts';
import { bindsFolders, hostMountsOf, type VolumePlaces } from './volume-mounts.ts';

export interface EmbeddedDriverOptions extends SpawnerConfig {
  /** Absolute; exists, and belongs to this daemon alone. */
  readonly dataDir: string;
  readonly records: InstanceRecords;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Program and arguments that run src/embedded/spawner/main; the data folder is added. Paths
   * absolute.
   */
  readonly spawnerEntry: { readonly command: readonly string[] };
  /** Absent: `host` is the only image. */
  readonly images?: ImageSettings;
  /** Absent: there are no volumes. */
  readonly volumes?: VolumePlaces;
  /** Absent: this one's. */
  readonly machine?: () => MachineSize;
}

export interface ImageSettings {
  /** Absolute folders whose entries are images. */
  readonly directories: readonly string[];
  /** Absolute: where they are unpacked. Absent: the usual place. */
  readonly unpackedDir?: string | undefined;
  readonly maxBytes: number;
  readonly unusedAfterMs: number;
  /** Program and arguments that run src/embedded/images/unpacker/main. Paths absolute. */
  readonly unpackerCommand: readonly string[];
}

/** An instance whose process the spawner has, or soon will. */
interface Known {
  vitals: Vitals;
  /** The vitals were reported. */
  reported: boolean;
  /** Its start is under way and not yet answered: the spawner need not have it. */
  ordered: boolean;
  /** It is to end, so that is asked of each spawner anew. */
  unwanted: boolean;
  /** As long as it is starting: then its record may move. */
  record: InstanceRecord | undefined;
  /** The key of its image, which is held for it. */
  image?: string;
  /** Its image is being made ready: the spawner has not heard of it yet. */
  preparing?: boolean;
  over?: boolean;
}

/** Runs instances on this machine: records in the instance table, processes with the spawner. */
export class EmbeddedSandboxDriver implements SandboxDriver {
  readonly files: EmbeddedFiles;
  readonly processes = new EmbeddedProcesses(() => this.#client.processes());
  readonly #records: InstanceRecords;
  readonly #log: Log;
  readonly #options: EmbeddedDriverOptions;
  /** Counted once: that takes a millisecond, and each launch asks. */
  readonly #machine: MachineSize;
  /** Asked of bubblewrap once, for the first pool that mounts a folder. */
  #bindsFolders: boolean | undefined;
  readonly #launchTurns = new LaunchTurns();
  readonly #client: SpawnerClient;
  readonly #logs: LogFiles;
  readonly #images: Images;
  readonly #ports: Ports;
  readonly #pauses: Pauses;
  readonly #known = new Map<InstanceId, Known>();
  readonly #ending = new Set<Promise<void>>();
  #report: (fact: InstanceFact) => void = () => {};

  constructor(options: EmbeddedDriverOptions) {
    this.#options = options;
    this.#machine = (options.machine ?? thisMachine)();
    this.#records = options.records;
    this.#log = options.log;
    const {
      launcherPath,
      bwrapPath,
      uidRange,
      pidsMax,
      parallelStarts,
      isolation = 'auto',
      logs,
    } = options;
    this.#logs = new LogFiles(pathsOf(options.dataDir).logs);
    this.#images = imagesOf(options);
    this.#client = new SpawnerClient({
      process: { dataDir: options.dataDir, command: options.spawnerEntry.command },
      config: { launcherPath, bwrapPath, uidRange, pidsMax, parallelStarts, isolation, logs },
      clock: options.clock,
      log: options.log,
      fact: (id, vitals) => this.#fact(id, vitals),
      connected: (instances) => this.#reconcile(instances),
    });
    this.files = new EmbeddedFiles(options.clock, this.#client);
    this.#ports = new Ports((id) => this.#client.socketTo({ type: 'forward', id }));
    this.#pauses = new Pauses({ records: options.records, client: this.#client, log: options.log });
  }

  describe(): DriverDescription {
    const { hello, silent } = this.#client;
    const problem = silent
      ? 'the spawner does not answer; it is replaced within half a minute'
      : 'the spawner is away';
    return {
      isolation: hello?.isolation ?? 'unknown',
      pauses: hello?.freezes ?? false,
      warnings: hello?.warnings ?? [],
      problems: hello && !silent ? [] : [problem],
      work: { instances: this.#known.size, ending: this.#ending.size },
    };
  }

  /**
   * Rejects with SpawnerUnusable where sandboxes can't be run here; its message says what to do.
   */
  async watch(report: (fact: InstanceFact) => void): Promise<void> {
    checkPrograms(this.#options);
    const all = await this.#records.all();
    for (const { record } of all) {
      this.#pauses.know(record);
      this.#known.set(record.id, {
        vitals: { kind: 'starting' },
        reported: false,
        ordered: false,
        unwanted: record.state === 'ending',
        record,
      });
    }
    this.#report = report;
    await this.#client.start();
    await Promise.all(this.#ending);
    await this.#images.start();
  }

  check(definition: InstanceDefinition): void {
    checkDefinition(definition, {
      isBare: this.#options.isolation === 'none',
      machine: this.#machine,
      refusalOfImage: (image) => this.#images.refusalOf(image),
      canBindFolders: () => (this.#bindsFolders ??= bindsFolders(this.#options.bwrapPath)),
    });
  }

  expect(definition: InstanceDefinition): void {
    for (const { image } of definition.containers) if (image !== 'host') this.#images.expect(image);
  }

  async launch(
    { record: unborn, definition }: LaunchOrder,
    permitted: () => boolean,
  ): Promise<InstanceRecord> {
    this.check(definition);
    const { id } = unborn;
    const release = await this.#launchTurns.take(unborn.poolOwner);
    const { record, found } = await this.#launchOrder(unborn, definition, permitted).finally(
      release,
    );
    if (found && (record.state !== 'idle' || this.#known.has(id))) return record;
    const known: Known = {
      vitals: { kind: 'starting' },
      reported: true,
      ordered: true,
      unwanted: false,
      record,
    };
    this.#known.set(id, known);
    this.#report({ id, record, vitals: known.vitals });
    const terms = await this.#termsOf(record, definition, known).catch((error: unknown) => {
      this.#log.debug({ id, error }, 'a sandbox could not be started');
      return startFailure(error);
    });
    // Its start took too long for somebody, and it was ended meanwhile.
    if (this.#known.get(id) !== known) return record;
    if (typeof terms === 'string') {
      this.#fact(id, { kind: 'gone', exitCode: null, reason: terms });
      return record;
    }
    const outcome = await this.#client.startInstance(id, terms).catch((error: unknown) => {
      throw new OutcomeUnknown('the daemon stops: the instance may or may not start', {
        cause: error,
      });
    });
    known.ordered = false;
    if (outcome === 'full') this.#turnedAway(id, known);
    else if (known.unwanted) this.#client.kill(id);
    return record;
  }

  claim(seen: InstanceRecord, claim: Claim): Promise<InstanceRecord> {
    return this.#records.claim(seen, claim);
  }

  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    return this.#pauses.amend(id, change, seen);
  }

  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord> {
    return this.#records.bump(id, seen);
  }

  async retire(id: InstanceId, seen: Revision): Promise<void> {
    await this.#records.retire(id, seen);
    this.#end(id);
  }

  async release(id: InstanceId, end: End): Promise<void> {
    await this.#records.release(id, end);
    this.#end(id);
  }

  forget(id: InstanceId): Promise<void> {
    return this.#records.forget(id);
  }

  async read(id: InstanceId): Promise<InstanceFact> {
    const stored = await this.#records.read(id);
    return {
      id,
      record: stored?.record,
      vitals: this.#known.get(id)?.vitals ?? {
        kind: 'gone',
        exitCode: null,
        reason: 'there is no such process',
      },
    };
  }

  /** The one daemon there is has reported what it wrote. */
  confirm(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
  idle(): Promise<readonly InstanceFact[]> {
    return Promise.resolve([]);
  }
  findClaimByKey(): Promise<readonly InstanceFact[]> {
    return Promise.resolve([]);
  }
  caughtUp(): Promise<void> {
    return Promise.resolve();
  }

  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome> {
    return this.#client.exec(id, request, signal);
  }

  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal> {
    return this.#client.attach(id, request);
  }

  logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    return this.#logs.tail(id, request);
  }

  followLogs(
    id: InstanceId,
    { after }: LogFollowing,
    signal: AbortSignal,
  ): AsyncIterable<LogBatch> {
    return this.#logs.follow(id, after, { signal, ended: () => !this.#known.has(id) });
  }

  probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    return this.#client.probe(id);
  }

  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection> {
    return this.#ports.dial(id, port, signal);
  }

  /** The spawner ends with the daemon; sandboxes stay. */
  async stop(): Promise<void> {
    this.#report = () => {};
    await Promise.all([this.#client.stop(), this.#images.stop()]);
  }

  async #launchOrder(
    unborn: LaunchOrder['record'],
    definition: InstanceDefinition,
    permitted: () => boolean,
  ): Promise<{ readonly record: InstanceRecord; readonly found: boolean }> {
    if (!permitted()) throw new LeaseLost('another replica launches');
    try {
      return { record: await this.#records.launchOrder(unborn, definition), found: false };
    } catch (error) {
      const stored =
        error instanceof RecordConflict ? await this.#records.read(unborn.id) : undefined;
      if (!stored) throw error;
      return { record: stored.record, found: true };
    }
  }

  /** With its image, which is then held for it. Rejects where that can't be had. */
  async #termsOf(
    { poolOwner }: InstanceRecord,
    definition: InstanceDefinition,
    known: Known,
  ): Promise<StartTerms> {
    const [container] = definition.containers;
    const tenant = tenantKey(poolOwner);
    const mounts = hostMountsOf(
      definition.volumes ?? [],
      poolOwner.namespace,
      this.#options.volumes,
    );
    if (!container || container.image === 'host') return { tenant, definition, mounts };
    known.preparing = true;
    const image = await this.#images.prepare(container.image);
    known.preparing = false;
    if (known.over) this.#images.release(image.key);
    else known.image = image.key;
    return {
      tenant,
      definition: { ...definition, containers: [withImageConfig(container, image)] },
      image,
      mounts,
    };
  }

  /** Too many wait to be started, which is no fault of the instance's. */
  #turnedAway(id: InstanceId, known: Known): void {
    if (known.unwanted)
      return this.#fact(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'it was ended before it was started',
      });
    if (known.image !== undefined) this.#images.release(known.image);
    known.over = true;
    this.#known.delete(id);
    throw new NoPlace('too many sandboxes wait to be started on this machine');
  }

  #end(id: InstanceId): void {
    const known = this.#known.get(id);
    if (known) known.unwanted = true;
    if (known?.preparing)
      this.#fact(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'it was ended while its image was made ready',
      });
    else this.#client.kill(id);
  }

  /**
   * Compares what the spawner has with what is known: reports differences, and ends processes
   * without a record.
   */
  #reconcile(instances: readonly InstanceReport[]): void {
    const listed = new Map(instances.map((report) => [report.id, report.vitals]));
    for (const { id, image } of instances) this.#holdImage(id, image);
    this.#pauses.reconcile(instances);
    for (const [id, known] of this.#known) {
      const vitals =
        listed.get(id) ??
        (known.ordered
          ? known.vitals
          : { kind: 'gone' as const, exitCode: null, reason: 'its process is gone' });
      this.#fact(id, vitals);
      if (known.unwanted && listed.has(id)) this.#client.kill(id);
    }
    for (const [id, vitals] of listed) {
      if (this.#known.has(id) || vitals.kind === 'gone') continue;
      this.#log.warn({ id }, 'a process without a record is ended');
      this.#client.kill(id);
    }
  }

  /** Holds the image of a sandbox that was found running, where none is held for it yet. */
  #holdImage(id: InstanceId, key: string | undefined): void {
    const known = this.#known.get(id);
    if (!known || key === undefined || known.image !== undefined) return;
    known.image = key;
    this.#images.hold(key);
  }

  #fact(id: InstanceId, vitals: Vitals): void {
    const known = this.#known.get(id);
    if (!known) return;
    if (vitals.kind === 'gone') return this.#ended(id, vitals);
    if (known.reported && sameVitals(known.vitals, vitals)) return;
    known.vitals = vitals;
    known.reported = true;
    const { record } = known;
    if (!record) return this.#moved(id, known);
    if (vitals.kind !== 'starting') known.record = undefined;
    this.#report({ id, record, vitals });
  }

  /**
   * Its readiness changed after it was available: the record is read, since it may have been
   * claimed since.
   */
  #moved(id: InstanceId, known: Known): void {
    const reported = this.#records.read(id).then(
      (stored) => {
        if (this.#known.get(id) === known)
          this.#report({ id, record: stored?.record, vitals: known.vitals });
      },
      (error: unknown) =>
        this.#log.error(
          { id, error },
          'the readiness of a sandbox can not be reported: its record can not be read',
        ),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }

  /** The record is read again: it may have been claimed, released or retired since. */
  #ended(id: InstanceId, vitals: Vitals): void {
    const known = this.#known.get(id);
    if (known?.image !== undefined) this.#images.release(known.image);
    if (known) known.over = true;
    this.#known.delete(id);
    this.#ports.forget(id);
    this.files.forget(id);
    this.#pauses.forget(id);
    const reported = this.#records.read(id).then(
      (stored) => this.#report({ id, record: stored?.record, vitals }),
      (error: unknown) =>
        this.#log.error(
          { id, error },
          'the end of a sandbox can not be reported: its record can not be read',
        ),
    );
    this.#ending.add(reported);
    void reported.finally(() => this.#ending.delete(reported));
  }
}

const imagesOf = ({ dataDir, bwrapPath, clock, log, images }: EmbeddedDriverOptions): Images =>
  new Images({
    directories: images?.directories ?? [],
    folder: images?.unpackedDir ?? pathsOf(dataDir).images,
    maxBytes: images?.maxBytes ?? 0,
    unusedAfterMs: images?.unusedAfterMs ?? 0,
    unpackerCommand: images?.unpackerCommand ?? [],
    bwrapPath,
    clock,
    log,
  });

const sameVitals = (a: Vitals, b: Vitals): boolean =>
  a.kind === b.kind && reasonOf(a) === reasonOf(b);
const reasonOf = (vitals: Vitals): string | undefined =>
  vitals.kind === 'starting' ? vitals.reason : undefined;
