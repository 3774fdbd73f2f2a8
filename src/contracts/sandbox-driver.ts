import type { ClaimChange } from '../model/claim-change.ts';
import type { Duplex } from 'node:stream';
import type { InstanceId, Revision } from '../model/identifiers.ts';
import type { LaunchOrder, Claim, End, InstanceFact, InstanceRecord } from '../model/sandbox.ts';
import type { InstanceDefinition } from '../model/templates/template.ts';
import type { SandboxFiles } from './files.ts';
import type { ProcessDriver } from './processes.ts';

/** The record moved since the given revision, or is gone. Nothing was written. */
export class RecordConflict extends Error {
  override readonly name = 'RecordConflict';
}

/**
 * The write may have landed, or may still land. `read()` shows which; repeating the same call is
 * safe.
 */
export class OutcomeUnknown extends Error {
  override readonly name: string = 'OutcomeUnknown';
}

/**
 * The permission to write ended before a write. Earlier writes of the same call stand; nothing else
 * was written.
 */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * The requested location has no capacity for the instance now. Nothing was made, and the definition
 * is not at fault. `message` gives the reason.
 */
export class NoPlace extends Error {
  override readonly name = 'NoPlace';
}

/** The driver can't run this definition at all; `message` names the field. */
export class DefinitionRefused extends Error {
  override readonly name = 'DefinitionRefused';
}

/** The instance lives, but nothing can run in it now. Nothing ran. `message` gives the reason. */
export class NotJoinable extends Error {
  override readonly name = 'NotJoinable';
}

/** The instance lives, but the requested container has ended and will not start again. */
export class ContainerGone extends Error {
  override readonly name = 'ContainerGone';
}

/** The instance ended or never started, so nothing can join it. */
export class InstanceGone extends Error {
  override readonly name = 'InstanceGone';
}

/** No process of the sandbox accepted the connection; `message` gives the reason. */
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
  /** Bytes kept of each stream. The driver reads and drops the rest. */
  readonly outputLimit: number;
  /**
   * Receives each kept piece of either stream before the next piece arrives. An exception ends the
   * command, and is the rejection.
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

/** A pty inside a sandbox. Its stream carries bytes, with back-pressure in both directions. */
export interface Terminal {
  readonly stream: Duplex;
  resize(cols: number, rows: number): void;
  /**
   * Signals the foreground process group: INT, TERM, HUP, QUIT, KILL, TSTP, CONT, WINCH, USR1,
   * USR2.
   */
  signal(name: string): void;
  /** Settles once, with the shell's exit code, or null if the link to the shell was lost. */
  readonly exit: Promise<number | null>;
  /** Set after the end: the kernel killed the shell because the sandbox had no memory left. */
  readonly outOfMemory?: boolean;
  /** Hangs up: the shell gets SIGHUP, and processes that remain are killed. Idempotent. */
  close(): void;
}

/** The instance's output is no longer kept. `message` says where else to look, if anywhere. */
export class LogsGone extends Error {
  override readonly name = 'LogsGone';
}

/** A line, or a part of a line, that an instance wrote to stdout or stderr. */
export interface LogLine {
  /** ISO 8601 in UTC, with nanoseconds. */
  readonly time: string;
  /** Any bytes, without the line end. */
  readonly text: Buffer;
  /** The line goes on in the next one. */
  readonly partial: boolean;
  /** Position in the log after this line. Opaque, one word, valid as long as the log exists. */
  readonly next: string;
}

export interface LogRequest {
  readonly container?: string;
  /** Number of last lines; whole lines count. */
  readonly tailLines: number;
  /** Ms since the epoch; omits all earlier lines. */
  readonly since?: number;
  /** Most bytes of text. Beyond the limit, the end of the log is returned. */
  readonly limitBytes: number;
}

export interface LogTail {
  readonly lines: readonly LogLine[];
  /**
   * Older lines were requested than were returned, because of their number, the limit, or
   * retention.
   */
  readonly truncated: boolean;
  /** For `followLogs`: position at the end of the log at that moment. */
  readonly next: string;
}

export interface LogFollowing {
  readonly container?: string;
  readonly after: string;
}

/** Lines printed since the last batch. `skipped` if earlier output is no longer kept. */
export interface LogBatch {
  readonly lines: readonly LogLine[];
  readonly skipped: boolean;
}

/**
 * Runs instances. Callers may repeat a call: the same instance id never makes a second instance,
 * and a completed step counts as done. Drivers report facts, and machines interpret them. Drivers
 * neither retry nor decide.
 *
 * Deliberately absent: listing (the supervisor's indexes answer), pools and tenants (a record
 * carries them as data).
 */
export interface SandboxDriver
  extends InstanceFacts, InstanceWrites, InsideInstances, InstanceLogs {
  stop(): Promise<void>;
}

/** The driver's reports about instances, and uncached reads. */
export interface InstanceFacts {
  /** The isolation in force, for readiness: its name and its gaps. */
  describe(): DriverDescription;
  /**
   * Reports every instance once, then every change, in order per instance. Resolves when the first
   * pass is complete. An instance with readiness probes is `starting` until all probes pass, then
   * `available`, and `unavailable` while a probe fails. A record without a process is `gone`, or
   * `starting` and `unlaunched` if another replica may be about to start it. The driver ends a
   * process without a record, and does not report it.
   */
  watch(report: (fact: InstanceFact) => void): Promise<void>;
  /**
   * Resolves once all writes from before this call have been reported. Rejects if that takes too
   * long.
   */
  caughtUp(): Promise<void>;
  /**
   * Reads record and process, uncached. The result is never older than an answer that another call
   * gave before this call.
   */
  read(id: InstanceId): Promise<InstanceFact>;
  /**
   * `read`, if reports may lag behind writes from before this call; undefined if reports can't lag.
   * Callers check every answer by id from reports with this, unless the answer is good news.
   * `namespace` locates an instance that was never reported.
   */
  confirm(id: InstanceId, namespace: string): Promise<InstanceFact | undefined>;
  /**
   * Idle instances of the pool that reports may not have shown yet, from a bounded uncached read
   * that starts after this call. The read may stop once it has found `atLeast`. Concurrent callers
   * share a read. Empty if reports never lag.
   */
  idle(poolUid: string, namespace: string, atLeast: number): Promise<readonly InstanceFact[]>;
  /**
   * Finds instances that a request with an Idempotency-Key claimed in the namespace, by the key of
   * its fingerprint. Reads the fingerprint on the records, uncached and bounded, after this call.
   * Empty if reports never lag.
   */
  findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]>;
}

/** Writes records of instances, and starts and ends their processes. */
export interface InstanceWrites {
  /** Throws DefinitionRefused if this driver can't run it. No I/O. */
  check(definition: InstanceDefinition): void;
  /**
   * Announces a launch, so that the driver may prepare its needs in the background. Faults show at
   * launch.
   */
  expect(definition: InstanceDefinition): void;
  /**
   * Writes the record, then starts the process. Resolves with the record once both are in progress;
   * `available` or `gone` follows as a fact. Calls `permitted` right before each write, and rejects
   * with LeaseLost on false. Rejects with OutcomeUnknown, NoPlace, or an error with the reason why
   * the start failed; the record may then still exist.
   */
  launch(launchOrder: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord>;
  /**
   * Resolves with the record once the claim is durable. Rejects with RecordConflict if the record
   * moved since `seen`, or with OutcomeUnknown. Calls `permitted` right before sending the write,
   * and rejects with LeaseLost on false. A permitted write lands within WRITE_MS, or never.
   */
  claim(seen: InstanceRecord, claim: Claim, permitted?: () => boolean): Promise<InstanceRecord>;
  /**
   * Changes the idle timeout of a claimed record, or pauses or resumes the instance. No process of
   * a paused instance runs. Its memory is kept across restarts of the daemon, and `release` ends it
   * as usual. Resolves once the change is in force and durable. Rejects with RecordConflict or
   * OutcomeUnknown. A pause also rejects with InstanceGone, with NotJoinable if pausing is
   * impossible now, and with DefinitionRefused if this driver can't pause. Idempotent.
   */
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /**
   * Moves the revision of an unclaimed record and changes nothing else. So an earlier write that
   * has not landed never will. Rejects with RecordConflict or OutcomeUnknown.
   */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /**
   * Deletes the record of an unclaimed instance if it has not moved, then ends the process.
   * Resolves when the record is gone, so nobody can claim it any more; `gone` follows as a fact.
   * Rejects with RecordConflict or OutcomeUnknown. `namespace` locates the record if the driver's
   * mirror may not show it.
   */
  retire(id: InstanceId, seen: Revision, namespace: string): Promise<void>;
  /**
   * Records durably that the claimed instance ends, at any revision, and ends the process. Resolves
   * once the end is durable; `gone` follows as a fact. The first recorded end stands. An unknown id
   * counts as done.
   */
  release(id: InstanceId, end: End): Promise<void>;
  /** Removes the record of an instance whose process is gone. An unknown id counts as done. */
  forget(id: InstanceId): Promise<void>;
}

/** Runs commands in running instances, and reaches their files and ports. */
export interface InsideInstances {
  /** Processes in running instances that outlive their caller. */
  readonly processes: ProcessDriver;
  /** Reads and writes files of running instances. */
  readonly files: SandboxFiles;
  /**
   * Rejects with InstanceGone, ContainerGone, NotJoinable, or with OutcomeUnknown if the command
   * was cut off. An abort kills the command, and rejects with its reason.
   */
  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome>;
  /** Rejects with InstanceGone, ContainerGone, NotJoinable or OutcomeUnknown. */
  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal>;
  /**
   * Runs the readiness probes of the instance (container and endpoints) once, now. Concurrent
   * callers may share a run. Does not change the reported status. Rejects with InstanceGone,
   * NotJoinable or OutcomeUnknown.
   */
  probe(id: InstanceId): Promise<readonly ProbeOutcome[]>;
  /**
   * Connects to a TCP port on the sandbox's own loopback. On the host's network, refuses a port on
   * which another process listens. The stream has back-pressure in both directions, and ends with
   * the sandbox. The stream may open before the port accepts; it buffers writes until then. Rejects
   * with InstanceGone, NotJoinable or OutcomeUnknown. Rejects or fails with PortUnreachable if
   * nothing accepts, or with the signal's reason.
   */
  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection>;
}

/** Reads the output of instances. */
export interface InstanceLogs {
  /**
   * End of the instance's output, also after the instance is gone, for as long as the output is
   * kept; empty if it printed nothing. Lines are whole, however they were written. Rejects with
   * LogsGone, or with NotJoinable if the log can't be read now. Checks neither access nor whether
   * the instance ever existed.
   */
  logs(id: InstanceId, request: LogRequest): Promise<LogTail>;
  /**
   * Follows the instance's output from `after` (a `next` of its container), in order and with
   * little delay. Ends after the last line of a gone instance, or at an abort. Reads no faster than
   * its consumer. Rejects with LogsGone. An invalid `after` counts as the beginning.
   */
  followLogs(id: InstanceId, from: LogFollowing, signal: AbortSignal): AsyncIterable<LogBatch>;
}

export type PortConnection = Duplex & Partial<PortTraits>;

/** Optional members of a connection, beside its stream. */
export interface PortTraits {
  /**
   * Resolves once the port accepts; rejects with the error of the stream. Absent if the port has
   * accepted.
   */
  readonly taken: Promise<void>;
  /** Offers all further bytes to `take` first. */
  readonly divert: (take: Taker) => void;
}

/**
 * Receives bytes in memory that is reused. Calls `done` when it no longer needs them; no more bytes
 * arrive before that. Returns false to leave the bytes to readers of the stream.
 */
export type Taker = (bytes: Buffer, done: () => void) => boolean;

/** Outcome of one probe; of the container's probe if `endpoint` is absent. */
export interface ProbeOutcome {
  readonly endpoint?: string;
  /** Reason of the failure; absent if the probe passed. */
  readonly failure?: string;
}

export interface DriverDescription {
  /** `cgroup-v2`, `cgroup-v1`, `prlimit`, `none` or `pod`; `unknown` while there are problems. */
  readonly isolation: string;
  /** Whether this driver can pause instances; not meaningful while there are problems. */
  readonly pauses: boolean;
  /** Counts of current objects and work, by name, for debugging. */
  readonly work?: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  /** Failures that keep the driver from its work now, one sentence each; empty if all is well. */
  readonly problems: readonly string[];
}
