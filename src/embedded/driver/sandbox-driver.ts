import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import {
  LeaseLost,
  OutcomeUnknown,
  RecordConflict,
  type DriverDescription,
  type ExecOutcome,
  type ExecRequest,
  type LogBatch,
  type LogFollowing,
  NoPlace,
  type LogRequest,
  type LogTail,
  type PortConnection,
  type ProbeOutcome,
  type SandboxDriver,
  type Terminal,
  type TerminalRequest,
} from '../../contracts/sandbox-driver.ts';
import { FairSlots } from '../../lib/fair-slots.ts';
import type { ClaimChange } from '../../model/claim-change.ts';
import type { InstanceId, Revision } from '../../model/identifiers.ts';
import type { LaunchOrder, End, InstanceFact, InstanceRecord } from '../../model/sandbox.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { InstanceDefinition } from '../../model/templates/template.ts';
import { checkDefinition, thisMachine, type MachineSize } from './check-definition.ts';
import { withImageConfig } from '../images/image-command.ts';
import { Images } from '../images/images.ts';
import type { InstanceRecords } from '../store/instance-records.ts';
import { EmbeddedFiles } from './embedded-files.ts';
import { LogFiles } from './log-files.ts';
import { Pauses } from './pauses.ts';
import { Ports } from './ports.ts';
import { EmbeddedProcesses } from './processes.ts';
import { pathsOf, type SpawnerConfig, type StartTerms } from '../spawner/protocol.ts';
import { startFailure } from '../spawner/public-message.ts';
import { SpawnerClient } from './spawner-client.ts';
import { checkPrograms } from './spawner-process.ts';
import { bindsFolders, hostMountsOf, type VolumePlaces } from './volume-mounts.ts';
import { KnownInstances, type Known } from './known-instances.ts';
import { imagesOf, type ImageSettings } from './image-settings.ts';

export interface EmbeddedDriverOptions extends SpawnerConfig {
  /** Absolute. Belongs only to this daemon. */
  readonly dataDir: string;
  readonly records: InstanceRecords;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs src/embedded/spawner/main; the data folder is appended. Paths are absolute. */
  readonly spawnerEntry: { readonly command: readonly string[] };
  /** If absent, `host` is the only image. */
  readonly images?: ImageSettings;
  readonly volumes?: VolumePlaces;
  readonly machine?: () => MachineSize;
}

/** They share a commit, so each is answered soon. */
const MOST_WRITTEN_AT_ONCE = 16;
/** As in the spawner's queue of starts. */
const MOST_LAUNCHES_WAITING = { mostWaiting: 4_096, mostWaitingOfTenant: 1_024 };

const noPlace = (): NoPlace =>
  new NoPlace('too many sandboxes are waiting to start on this machine');

/** Records are in the instance table, processes with the spawner. */
export class EmbeddedSandboxDriver implements SandboxDriver {
  readonly files: EmbeddedFiles;
  readonly processes: EmbeddedProcesses;
  /** Does not touch the process. */
  readonly claim: InstanceRecords['claim'];
  readonly #records: InstanceRecords;
  readonly #log: Log;
  readonly #options: EmbeddedDriverOptions;
  /** Takes a millisecond, and each launch needs it. */
  readonly #machine: MachineSize;
  /** Checked for the first pool that mounts a folder. */
  #bindsFolders: boolean | undefined;
  /** A burst of one tenant does not delay the others. */
  readonly #launches = new FairSlots({
    most: () => MOST_WRITTEN_AT_ONCE,
    mostOfTenant: (most) => most,
    ...MOST_LAUNCHES_WAITING,
  });
  readonly #client: SpawnerClient;
  readonly #logs: LogFiles;
  readonly #images: Images;
  readonly #ports: Ports;
  readonly #pauses: Pauses;
  readonly #known: KnownInstances;

  constructor(options: EmbeddedDriverOptions) {
    this.#options = options;
    this.#machine = (options.machine ?? thisMachine)();
    this.#records = options.records;
    this.claim = options.records.claim;
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
    this.#known = new KnownInstances({
      records: options.records,
      images: this.#images,
      log: options.log,
      kill: (id) => this.#client.kill(id),
      gone: (id) => {
        this.#ports.forget(id);
        this.files.forget(id);
        this.#pauses.forget(id);
      },
    });
    this.#client = new SpawnerClient({
      process: {
        dataDir: options.dataDir,
        command: options.spawnerEntry.command,
        clock: options.clock,
      },
      config: { launcherPath, bwrapPath, uidRange, pidsMax, parallelStarts, isolation, logs },
      clock: options.clock,
      log: options.log,
      fact: (id, vitals, programsEnded) => this.#known.fact(id, vitals, programsEnded),
      connected: (instances) => {
        this.#pauses.reconcile(instances);
        this.#known.reconcile(instances);
      },
    });
    this.files = new EmbeddedFiles(options.clock, this.#client);
    this.processes = new EmbeddedProcesses({
      spawner: this.#client,
      isRunning: (id) => this.#known.isRunning(id),
      folder: pathsOf(options.dataDir).holders,
      clock: options.clock,
    });
    this.#ports = new Ports((id) => this.#client.socketTo({ type: 'forward', id }));
    this.#pauses = new Pauses({ records: options.records, client: this.#client, log: options.log });
  }

  describe(): DriverDescription {
    const { hello, silent } = this.#client;
    const problem = silent
      ? 'the spawner does not answer; it is replaced within half a minute'
      : 'the spawner is not running';
    return {
      isolation: hello?.isolation ?? 'unknown',
      pauses: hello?.freezes ?? false,
      warnings: hello?.warnings ?? [],
      problems: hello && !silent ? [] : [problem],
      work: this.#known.counts,
    };
  }

  /** Rejects with SpawnerUnusable if sandboxes can't run here; the message names the remedy. */
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
    this.#known.follow(report);
    await this.#client.start();
    await this.#known.settled();
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
    const release = await this.#launches.take(tenantKey(unborn.poolOwner), { full: noPlace });
    const { record, found } = await this.#launchOrder(unborn, definition, permitted).finally(
      release,
    );
    if (found && (record.state !== 'idle' || this.#known.get(id) !== undefined)) return record;
    const known: Known = {
      vitals: { kind: 'starting' },
      reported: true,
      ordered: true,
      unwanted: false,
      record,
    };
    this.#known.set(id, known);
    this.#known.report({ id, record, vitals: known.vitals });
    const terms = await this.#termsOf(record, definition, known).catch((error: unknown) => {
      this.#log.debug({ id, error }, 'sandbox-not-started');
      return startFailure(error);
    });
    // The start took too long, and the instance was ended.
    if (this.#known.get(id) !== known) return record;
    if (typeof terms === 'string') {
      this.#known.fact(id, { kind: 'gone', exitCode: null, reason: terms });
      return record;
    }
    const outcome = await this.#client.startInstance(id, terms).catch((error: unknown) => {
      throw new OutcomeUnknown('the daemon is stopping: the instance may or may not start', {
        cause: error,
      });
    });
    known.ordered = false;
    if (outcome === 'full') this.#known.turnedAway(id, known);
    else if (known.unwanted) this.#client.kill(id);
    return record;
  }

  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord> {
    return this.#pauses.amend(id, change, seen);
  }

  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord> {
    return this.#records.bump(id, seen);
  }

  async retire(id: InstanceId, seen: Revision): Promise<void> {
    await this.#records.retire(id, seen);
    this.#known.end(id);
  }

  async release(id: InstanceId, end: End): Promise<void> {
    await this.#records.release(id, end);
    this.#known.end(id);
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
        reason: 'the process does not exist',
      },
    };
  }

  /** This daemon is the only writer. */
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
    return this.processes.attach(id, request);
  }

  logs(id: InstanceId, request: LogRequest): Promise<LogTail> {
    return this.#logs.tail(id, request);
  }

  followLogs(
    id: InstanceId,
    { after }: LogFollowing,
    signal: AbortSignal,
  ): AsyncIterable<LogBatch> {
    return this.#logs.follow(id, after, { signal, ended: () => this.#known.get(id) === undefined });
  }

  probe(id: InstanceId): Promise<readonly ProbeOutcome[]> {
    return this.#client.probe(id);
  }

  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection> {
    return this.#ports.dial(id, port, signal);
  }

  /** Sandboxes keep running. */
  async stop(): Promise<void> {
    this.#known.follow(() => {});
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

  /** Holds the image. Rejects if it is not available. */
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
}
