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

/** The permission to write ended before a write. Earlier writes of the same call stand. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * No capacity for the instance now. Nothing was made, and the definition is not at fault. `message`
 * gives the reason.
 */
export class NoPlace extends Error {
  override readonly name = 'NoPlace';
}

/** `message` names the field. */
export class DefinitionRefused extends Error {
  override readonly name = 'DefinitionRefused';
}

/** The instance lives. Nothing ran. `message` gives the reason. */
export class NotJoinable extends Error {
  override readonly name = 'NotJoinable';
}

/** The instance lives, but the container will not start again. */
export class ContainerGone extends Error {
  override readonly name = 'ContainerGone';
}

/** It ended or never started. */
export class InstanceGone extends Error {
  override readonly name = 'InstanceGone';
}

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
  /** The driver reads and drops the rest. */
  readonly outputLimit: number;
  /**
   * Receives each kept piece before the next one arrives. An exception ends the command, and is the
   * rejection.
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

/** Its stream carries bytes, with back-pressure in both directions. */
export interface Terminal {
  readonly stream: Duplex;
  resize(cols: number, rows: number): void;
  /**
   * Signals the foreground process group: INT, TERM, HUP, QUIT, KILL, TSTP, CONT, WINCH, USR1,
   * USR2.
   */
  signal(name: string): void;
  /** Null if the link to the shell was lost. */
  readonly exit: Promise<number | null>;
  /** The kernel killed the shell because the sandbox was out of memory. */
  readonly outOfMemory?: boolean;
  /** The shell gets SIGHUP, and processes that remain are killed. Idempotent. */
  close(): void;
}

/** The output is no longer kept. `message` says where else to look, if anywhere. */
export class LogsGone extends Error {
  override readonly name = 'LogsGone';
}

export interface LogLine {
  /** ISO 8601 in UTC, with nanoseconds. */
  readonly time: string;
  /** Any bytes, without the line end. */
  readonly text: Buffer;
  readonly partial: boolean;
  /** Position after this line. Opaque, one word, valid as long as the log exists. */
  readonly next: string;
}

export interface LogRequest {
  readonly container?: string;
  readonly tailLines: number;
  /** Ms since the epoch; omits all earlier lines. */
  readonly since?: number;
  readonly limitBytes: number;
}

export interface LogTail {
  readonly lines: readonly LogLine[];
  readonly truncated: boolean;
  /** For `followLogs`: position at the end of the log at that moment. */
  readonly next: string;
}

export interface LogFollowing {
  readonly container?: string;
  readonly after: string;
}

export interface LogBatch {
  readonly lines: readonly LogLine[];
  readonly skipped: boolean;
}

/**
 * Callers may repeat a call: the same instance id never makes a second instance, and a completed
 * step counts as done. Drivers report facts, and machines interpret them; drivers neither retry nor
 * decide.
 */
export interface SandboxDriver
  extends InstanceFacts, InstanceWrites, InsideInstances, InstanceLogs {
  stop(): Promise<void>;
}

export interface InstanceFacts {
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
  /** Uncached; never older than an answer that another call gave before this call. */
  read(id: InstanceId): Promise<InstanceFact>;
  /**
   * `read`, if reports may lag behind writes from before this call, else undefined. Callers check
   * every answer by id with this, unless the answer is good news. `namespace` locates an instance
   * that was never reported.
   */
  confirm(id: InstanceId, namespace: string): Promise<InstanceFact | undefined>;
  /**
   * Includes instances that reports may not have shown yet: a bounded uncached read, up to
   * `atLeast`. Concurrent callers share a read. Empty if reports never lag.
   */
  idle(poolUid: string, namespace: string, atLeast: number): Promise<readonly InstanceFact[]>;
  /**
   * By the fingerprint on the records, uncached and bounded, after this call. Empty if reports
   * never lag.
   */
  findClaimByKey(markKey: string, namespace: string): Promise<readonly InstanceFact[]>;
}

export interface InstanceWrites {
  /** Throws DefinitionRefused if this driver can't run it. No I/O. */
  check(definition: InstanceDefinition): void;
  /** The driver may prepare a launch's needs in the background. Faults show at launch. */
  expect(definition: InstanceDefinition): void;
  /**
   * Writes the record, then starts the process. Resolves once both are in progress; `available` or
   * `gone` follows as a fact. Calls `permitted` right before each write, and rejects with LeaseLost
   * on false. Rejects with OutcomeUnknown, NoPlace, or the reason why the start failed; the record
   * may then still exist.
   */
  launch(launchOrder: LaunchOrder, permitted: () => boolean): Promise<InstanceRecord>;
  /**
   * Resolves once the claim is durable. Rejects with RecordConflict if the record moved since
   * `seen`, or with OutcomeUnknown. Calls `permitted` right before sending the write, and rejects
   * with LeaseLost on false. A permitted write lands within WRITE_MS, or never.
   */
  claim(seen: InstanceRecord, claim: Claim, permitted?: () => boolean): Promise<InstanceRecord>;
  /**
   * No process of a paused instance runs; its memory is kept across restarts of the daemon.
   * Resolves once the change is in force and durable. Rejects with RecordConflict or
   * OutcomeUnknown; a pause also with InstanceGone, NotJoinable, or DefinitionRefused if this
   * driver can't pause. Idempotent.
   */
  amend(id: InstanceId, change: ClaimChange, seen: Revision): Promise<InstanceRecord>;
  /**
   * Changes nothing but the revision of an unclaimed record, so that an earlier write can no longer
   * land. Rejects with RecordConflict or OutcomeUnknown.
   */
  bump(id: InstanceId, seen: Revision): Promise<InstanceRecord>;
  /**
   * Deletes the record of an unclaimed instance if it has not moved, then ends the process.
   * Resolves when the record is gone, so nobody can claim it any more. Rejects with RecordConflict
   * or OutcomeUnknown. `namespace` locates the record if the driver's mirror may not show it.
   */
  retire(id: InstanceId, seen: Revision, namespace: string): Promise<void>;
  /**
   * At any revision. Resolves once the end is durable; `gone` follows as a fact. The first recorded
   * end stands. An unknown id counts as done.
   */
  release(id: InstanceId, end: End): Promise<void>;
  /** The process must be gone. An unknown id counts as done. */
  forget(id: InstanceId): Promise<void>;
}

export interface InsideInstances {
  readonly processes: ProcessDriver;
  readonly files: SandboxFiles;
  /**
   * Rejects with InstanceGone, ContainerGone, NotJoinable, or with OutcomeUnknown if the command
   * was cut off. An abort kills the command, and rejects with its reason.
   */
  exec(id: InstanceId, request: ExecRequest, signal: AbortSignal): Promise<ExecOutcome>;
  /** Rejects with InstanceGone, ContainerGone, NotJoinable or OutcomeUnknown. */
  attach(id: InstanceId, request: TerminalRequest): Promise<Terminal>;
  /**
   * Runs each readiness probe once, now; concurrent callers may share a run. Does not change the
   * reported status. Rejects with InstanceGone, NotJoinable or OutcomeUnknown.
   */
  probe(id: InstanceId): Promise<readonly ProbeOutcome[]>;
  /**
   * A port on the sandbox's own loopback. On the host's network, refuses a port on which another
   * process listens. The stream has back-pressure, ends with the sandbox, and may open before the
   * port accepts. Rejects with InstanceGone, NotJoinable or OutcomeUnknown; rejects or fails with
   * PortUnreachable, or with the signal's reason.
   */
  dial(id: InstanceId, port: number, signal: AbortSignal): Promise<PortConnection>;
}

export interface InstanceLogs {
  /**
   * Also after the instance is gone, while the output is kept. Lines are whole, however they were
   * written. Rejects with LogsGone, or with NotJoinable if the log can't be read now. Checks
   * neither access nor whether the instance ever existed.
   */
  logs(id: InstanceId, request: LogRequest): Promise<LogTail>;
  /**
   * From `after` (a `next` of its container; by default the beginning), in order. Ends after the
   * last line of a gone instance, or at an abort. Reads no faster than its consumer. Rejects with
   * LogsGone.
   */
  followLogs(id: InstanceId, from: LogFollowing, signal: AbortSignal): AsyncIterable<LogBatch>;
}

export type PortConnection = Duplex & Partial<PortTraits>;

export interface PortTraits {
  /**
   * Resolves once the port accepts; rejects with the error of the stream. Absent if the port has
   * accepted.
   */
  readonly taken: Promise<void>;
  readonly divert: (take: Taker) => void;
}

/**
 * The memory of `bytes` is reused: call `done` when they are no longer needed; no more bytes arrive
 * before that. Returns false to leave the bytes to readers of the stream.
 */
export type Taker = (bytes: Buffer, done: () => void) => boolean;

export interface ProbeOutcome {
  readonly endpoint?: string;
  readonly failure?: string;
}

export interface DriverDescription {
  /** `cgroup-v2`, `cgroup-v1`, `prlimit`, `none` or `pod`; `unknown` while there are problems. */
  readonly isolation: string;
  readonly pauses: boolean;
  readonly work?: Readonly<Record<string, number>>;
  readonly warnings: readonly string[];
  readonly problems: readonly string[];
}
