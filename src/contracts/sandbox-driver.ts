import type { ClaimChange } from '../model/claim-change.ts';
import type { Duplex } from 'node:stream';
import type { InstanceId, Revision } from '../model/identifiers.ts';
import type { LaunchOrder, Claim, End, InstanceFact, InstanceRecord } from '../model/sandbox.ts';
import type { InstanceDefinition } from '../model/templates/template.ts';
import type { SandboxFiles } from './files.ts';
import type { ProcessDriver } from './processes.ts';

/** The record moved on since the revision that was seen, or is gone. Nothing was written. */
export class RecordConflict extends Error {
  override readonly name = 'RecordConflict';
}

/** The write may have landed, or may yet. `read()` tells; repeating the same call is safe. */
export class OutcomeUnknown extends Error {
  override readonly name: string = 'OutcomeUnknown';
}

/**
 * The permission to write ended before the write. Nothing more was written than is known already.
 */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * There is no place for the instance now where it was to be; nothing was made, and it is not the
 * definition's fault. `message` says why.
 */
export class NoPlace extends Error {
  override readonly name = 'NoPlace';
}

/** The driver can't run this definition at all; `message` names the field. */
export class DefinitionRefused extends Error {
  override readonly name = 'DefinitionRefused';
}

/** The instance lives, but nothing could be run in it now; nothing was. `message` says why. */
export class NotJoinable extends Error {
  override readonly name = 'NotJoinable';
}

/** The instance lives, but that container of it has ended, and will not start again. */
export class ContainerGone extends Error {
  override readonly name = 'ContainerGone';
}

/** The instance isn't there to be joined: it ended, or never started. */
export class InstanceGone extends Error {
  override readonly name = 'InstanceGone';
}

/** Nothing of the sandbox's took the connection; `message` says why. */
export class PortUnreachable extends Error {
  override readonly name = 'PortUnreachable';
}

export interface ExecRequest {
  readonly argv: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly container?: string;
  readonly timeoutMs: number;
  /** Bytes kept of each stream; the rest is read and dropped. */
  readonly outputLimit: number;
  /**
   * Told of each piece that is to be kept, of either stream, before the next one comes. What it
   * throws ends the command, and is the rejection.
   */
  readonly gathered?: (bytes: Buffer) => void;
}

export interface ExecOutcome {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** 128 + n after signal n; 124 when timed out. */
  readonly exitCode: number;
  readonly timedOut: boolean;
  readonly truncated: boolean;
  readonly durationMs: number;
  readonly outOfMemory?: true;
}

export interface TerminalRequest {
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cols: number;
  readonly rows: number;
  readonly container?: string;
}

/** A pty inside a sandbox. Its stream carries bytes, and obeys back-pressure, both ways. */
export interface Terminal {
  readonly stream: Duplex;
  resize(cols: number, rows: number): void;
  /** To the foreground process group: INT, TERM, HUP, QUIT, KILL, TSTP, CONT, WINCH, USR1, USR2. */
  signal(name: string): void;
  /** Settles once, with the shell's exit code; null when the link to it was lost. */
  readonly exit: Promise<number | null>;
  /** Once it has ended: the kernel killed the shell because the sandbox had no memory left. */
  readonly outOfMemory?: boolean;
  /** Hangs up: the shell gets SIGHUP, what stays is killed. May be repeated. */
  close(): void;
}

/**
 * Says that what an instance printed is not kept any more; `message` says where to look instead, if
 * anywhere.
 */
export class LogsGone extends Error {
  override readonly name = 'LogsGone';
}

/** A line that an instance printed, to its output or its errors, or a part of one. */
export interface LogLine {
  /** ISO 8601 in UTC, with nanoseconds. */
  readonly time: string;
  /** Without its line end; any bytes. */
  readonly text: Buffer;
  /** The line goes on in the next one. */
  readonly partial: boolean;
  /** Where the log goes on after it. Opaque, one word, valid for as long as the log is. */
  readonly next: string;
}

export interface LogRequest {
  readonly container?: string;
  /** The last so many lines; whole ones are counted. */
  readonly tailLines: number;
  /** ms since the epoch: nothing that was printed before. */
  readonly since?: number;
  /** Bytes of text at most; of more the end is given. */
  readonly limitBytes: number;
}

export interface LogTail {
  readonly lines: readonly LogLine[];
  /**
   * Older lines were asked for than are given: by their number, by the limit, or because they are
   * not kept any more.
   */
  readonly truncated: boolean;
  /** For `followLogs`: where the log went on at that moment. */
  readonly next: string;
}

export interface LogFollowing {
  readonly container?: string;
  readonly after: string;
}

/** Describes what was printed since; `skipped`: something before it is not kept any more. */
export interface LogBatch {
  readonly lines: readonly LogLine[];
  readonly skipped: boolean;
}

/**
 * A place that runs instances. Calls may be repeated: the same instance id never makes a second
 * instance, and what is already done counts as done. Drivers report facts; what a fact means is for
 * the machines. Nothing here retries or decides.
 *
 * Deliberately absent: listing (the supervisor's indexes answer), pools and tenants (a record
 * carries them as data).
 */
export interface SandboxDriver
  extends InstanceFacts, InstanceWrites, InsideInstances, InstanceLogs {
  stop(): Promise<void>;
}

/** Tells of instances: what the driver reports, and what can be read uncached. */
export interface InstanceFacts {
  /** The isolation in force, for readiness: its name and what it does not give. */
  describe(): DriverDescription;
  /**
   * Reports every instance once, then every change, in order per instance; resolves when the first
   * pass is complete. An instance with readiness probes is `starting` until all of them pass, then
   * `available`, and `unavailable` while one fails. A record without a process is reported as
   * `gone`, or as `starting` and `unlaunched` where another replica may be about to start it. A
   * process without a record is ended by the driver, not reported.
   */
  watch(report: (fact: InstanceFact) => void): Promise<void>;
  /**
   * Resolves once everything that was written before this call has been reported. Rejects where
   * that takes too long.
   */
  caughtUp(): Promise<void>;
  /**
   * Record and process as they stand now, uncached: never older than what another call had answered
   * before this one is.
   */
  read(id: InstanceId): Promise<InstanceFact>;
  /**
   * `read`, where what was reported so far may be behind what was written before this call;
   * undefined where it can't be. What is answered by id from reports alone is checked by this,
   * unless it is good news. One that was never reported is looked for in `namespace`.
   */
  confirm(id: InstanceId, namespace: string): Promise<InstanceFact | undefined>;
  /**
   * Idle instances of the pool that reports may not have shown yet, read uncached after this call
   * came; bounded. It may end once it has found `atLeast`. Those who ask at the same time share one
   * reading. None where reports are never behind.
   */
  idle(poolUid: string, namespace: string, atLeast: number): Promise<readonly InstanceFact[]>;
  /**
   * Finds what a request with an Idempotency-Key claimed in the namespace, by its mark's key, that
   * reports may not have shown yet: read uncached after this call came, by the mark on the record;
   * bounded. None where reports are never behind.
   */
  findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]>;
}

/** Writes records of instances, and starts and ends their processes. */
export interface InstanceWrites {
  /** Throws DefinitionRefused where this driver can't run it. No I/O. */
  check(definition: InstanceDefinition): void;
  /**
   * It will be launched sooner or later: what it needs may be made ready in the background. What is
   * wrong shows at launch.
   */
  expect(definition: InstanceDefinition): void;
  /**
   * Writes the record, then starts the process. Resolves with the record once both are under way;
   * `available` or `gone` comes as a fact. `permitted` is asked right before each write; where it
   * returns false: LeaseLost. Rejects with OutcomeUnknown, with NoPlace, or with another error that
   * says why it can't be started; then its record may be there yet.
   */
  launch(launchOrder: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord>;
  /**
   * Resolves with the record once the claim is durable. Rejects with RecordConflict where the
   * record is no more as seen, or OutcomeUnknown. `permitted` is asked right before the write is
   * sent: where it answers false: LeaseLost. What it permits lands within WRITE_MS, or never.
   */
  claim(seen: InstanceRecord, claim: Claim, permitted?: () => boolean): Promise<InstanceRecord>;
  /**
   * Changes the idle timeout of a claimed record, or pauses the instance or has it go on. Nothing
   * of a paused one runs, and its memory is kept, across restarts of whoever runs it; `release`
   * ends it as any other. Resolves once that is so, and durable. Rejects with RecordConflict or
   * OutcomeUnknown; a pause also with InstanceGone, with NotJoinable where it can't be done now,
   * and with DefinitionRefused where it can't be done here. Repeating it is safe.
   */
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /**
   * Moves the revision of an unclaimed record and changes nothing else: what was sent before, and
   * has not landed, never does. Rejects with RecordConflict or OutcomeUnknown.
   */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /**
   * Deletes the record of an unclaimed instance if it has not moved, then ends the process.
   * Resolves when the record is gone, so that nobody can claim it any more; `gone` comes as a fact.
   * Rejects with RecordConflict or OutcomeUnknown. `namespace`: where the record is, for a driver
   * whose mirror may not show it.
   */
  retire(id: InstanceId, seen: Revision, namespace: string): Promise<void>;
  /**
   * Notes durably that the claimed instance ends, whatever its revision, and ends the process.
   * Resolves once noted; `gone` comes as a fact. The first end noted stands. An unknown id counts
   * as done.
   */
  release(id: InstanceId, end: End): Promise<void>;
  /** Removes the record of an instance whose process is gone. An unknown id counts as done. */
  forget(id: InstanceId): Promise<void>;
}

/** Runs commands in running instances, and reaches their files and ports. */
export interface InsideInstances {
  /** Processes in running instances, which nobody has to wait for. */
  readonly processes: ProcessDriver;
  /** Reads and writes files of running instances. */
  readonly files: SandboxFiles;
  /**
   * Rejects with InstanceGone, ContainerGone, NotJoinable, or OutcomeUnknown where the command was
   * cut off. An abort kills the command, and rejects with its reason.
   */
  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome>;
  /** Rejects with InstanceGone, ContainerGone, NotJoinable or OutcomeUnknown. */
  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal>;
  /**
   * Runs the readiness probes of the instance, container's and endpoints', once and now; those who
   * ask at the same time may share a run. Changes nothing of what it is said to be. Rejects with
   * InstanceGone, NotJoinable or OutcomeUnknown.
   */
  probe(id: InstanceId): Promise<readonly ProbeOutcome[]>;
  /**
   * A connection to a TCP port of the sandbox's own loopback, and of nobody else's: where it has
   * the host's network, what another process listens on is refused. The stream obeys back-pressure
   * both ways and ends with the sandbox. It may be given before the port has taken it; what is
   * written waits until then. Rejects with InstanceGone, NotJoinable or OutcomeUnknown; rejects or
   * fails with PortUnreachable where nothing takes it, or with the signal's reason.
   */
  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection>;
}

/** Reads what instances print. */
export interface InstanceLogs {
  /**
   * The end of what the instance printed, also after it is gone, for as long as it is kept; nothing
   * where it printed nothing. A line is whole, however it was written. Rejects with LogsGone, or
   * with NotJoinable where it can't be read now. Who may read it is not asked here, nor whether
   * there ever was such an instance.
   */
  logs(id: InstanceId, request: LogRequest): Promise<LogTail>;
  /**
   * Follows what the instance prints from `after` on (a `next` of its container), in order and
   * soon; ends once it is gone and all was given, or at an abort. Reads no faster than it is asked.
   * Rejects with LogsGone; what `after` no place is counts as the beginning.
   */
  followLogs(id: InstanceId, from: LogFollowing, signal: AbortSignal): AsyncIterable<LogBatch>;
}

export type PortConnection = Duplex & Partial<PortTraits>;

/** Describes what a connection may have beside its stream. */
export interface PortTraits {
  /**
   * Resolves once the port has taken it; rejects with what the stream then fails with. Absent where
   * it has.
   */
  readonly taken: Promise<void>;
  /** From now on what comes is offered to `take` first. */
  readonly divert: (take: Taker) => void;
}

/**
 * Is given bytes in memory that is used again: it calls `done` when it no longer needs them, before
 * which no more comes. Answers false where it does not want them; then they are to be read from the
 * stream.
 */
export type Taker = (bytes: Buffer, done: () => void) => boolean;

/** Outcome of one probe; of the container's where no endpoint is named. */
export interface ProbeOutcome {
  readonly endpoint?: string;
  /** Why it failed; absent where it passed. */
  readonly failure?: string;
}

export interface DriverDescription {
  /** `cgroup-v2`, `cgroup-v1`, `prlimit`, `none` or `pod`; `unknown` while there are problems. */
  readonly isolation: string;
  /** Whether instances can be paused here; unknown while there are problems. */
  readonly pauses: boolean;
  /** How many of what it has at hand or under way, for whoever looks inside. */
  readonly work?: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  /** Says what keeps it from its work now, one sentence each; empty when all is well. */
  readonly problems: readonly string[];
}
