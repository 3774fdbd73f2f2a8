import type { SandboxSnapshot } from '../sandbox/sandbox-snapshot.ts';
import type { Supervisor } from '../sandbox/supervisor.ts';
import type { Clock } from '../../contracts/clock.ts';
import {
  type SandboxDriver,
  ContainerGone,
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
} from '../../contracts/sandbox-driver.ts';
import { ByteShares } from '../../lib/byte-shares.ts';
import type { ClaimFile } from '../../model/claim-terms.ts';
import { noFilesHere, tooMuchOfClaims, fileConflict } from '../../model/file-refusals.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import { unavailable, Refusal } from '../../model/refusals.ts';
import { isKeyed, type RequestFingerprint } from '../../model/request-fingerprint.ts';
import { tenantKey, type Tenant } from '../../model/tenant.ts';
import { endDurably, isEndDurable } from '../sandbox/commands/end-durably.ts';
import type { ClaimRequest } from '../sandbox/commands/sandbox-operations.ts';
import type { PendingRequests } from './pending-requests.ts';
import { FileRefused } from '../../contracts/files.ts';
import { NotDone } from '../../contracts/not-done.ts';
import { fileRefusalOf } from '../sandbox/commands/file-refusal.ts';

const WRITTEN_WITHIN_MS = 20_000;
const ENDED_WITHIN_MS = 60_000;
/** MiB in this process, per tenant and in total. */
const MOST_OF_TENANT_MIB = 16;
const MOST_MIB = 64;

export interface ClaimFilesDeps {
  readonly supervisor: Supervisor;
  readonly driver: Pick<SandboxDriver, 'files'>;
  readonly clock: Clock;
  readonly pendingRequests: PendingRequests;
}

/** Written after the claim's commit and before its answer. */
export class ClaimFiles {
  readonly #deps: ClaimFilesDeps;
  readonly #held = new ByteShares({
    totalBytes: MOST_MIB << 20,
    tenantBytes: MOST_OF_TENANT_MIB << 20,
  });

  constructor(deps: ClaimFilesDeps) {
    this.#deps = deps;
  }

  /**
   * Reserves memory until disposal. Refuses with FEATURE_DISABLED, TOO_MANY_WAITING or UNAVAILABLE.
   */
  hold(owner: Tenant, files: readonly ClaimFile[]): Disposable {
    if (!this.#deps.driver.files.provided)
      throw noFilesHere('this deployment does not support files of sandboxes; claim without files');
    const tenant = tenantKey(owner);
    const bytes = files.reduce((sum, { content }) => sum + content.length, 0);
    this.#held.add(tenant, bytes);
    const over = this.#held.over(tenant);
    if (over !== undefined) {
      this.#held.add(tenant, -bytes);
      throw over === tenant
        ? tooMuchOfClaims(MOST_OF_TENANT_MIB)
        : unavailable('the files of claims in progress use too much memory; try again shortly');
    }
    return { [Symbol.dispose]: () => this.#held.add(tenant, -bytes) };
  }

  prepare(id: InstanceId): void {
    this.#deps.driver.files.prepare(id);
  }

  /**
   * A failure undoes the claim: the sandbox ends, and the Refusal names reason and field. Keeps the
   * claim if this replica lost its request's lease, since another may have answered with it.
   */
  async write(
    id: InstanceId,
    files: readonly ClaimFile[],
    { opening, mark }: Pick<ClaimRequest, 'opening' | 'mark'>,
  ): Promise<void> {
    try {
      await this.#writeAll(id, files);
    } catch (error) {
      if (opening && !(await opening.isOurs()))
        throw claimFileRefusal(error, {
          sandboxId: id,
          hint:
            'the sandbox continues, because another replica may have answered this request; ' +
            'repeat the request',
        });
      await this.#giveBack(id, opening?.mark ?? mark);
      throw claimFileRefusal(error, { hint: 'the claim was undone' });
    }
    this.#prepareNext(id);
  }

  /** Claims with files usually repeat. */
  #prepareNext(id: InstanceId): void {
    const { supervisor, driver } = this.#deps;
    const poolUid = supervisor.sandbox(id)?.context.poolUid;
    const next = poolUid === undefined ? undefined : supervisor.idle.next(poolUid);
    if (next !== undefined) driver.files.prepare(next);
  }

  /**
   * For a repeated request: the earlier one may have died before the writes. A failure keeps the
   * sandbox, which may be in use.
   */
  async writeAgain(id: InstanceId, files: readonly ClaimFile[], namespace: string): Promise<void> {
    const { supervisor } = this.#deps;
    await supervisor.refresh(id, namespace);
    const shown = supervisor.sandbox(id);
    if (shown?.status !== 'Running') {
      if (shown?.context.end?.reason !== 'claim-failed') return; // answers with its current state
      throw unavailable('an earlier request undid its claim; repeat the request');
    }
    await supervisor.pauses.awake(shown);
    try {
      await this.#writeAll(id, files);
    } catch (error) {
      throw claimFileRefusal(error, {
        sandboxId: id,
        hint:
          'an earlier request claimed the sandbox, which continues; repeat this request, or ' +
          'delete the sandbox',
      });
    }
  }

  /** Rejects with the first failure, and cancels the other writes. */
  async #writeAll(id: InstanceId, files: readonly ClaimFile[]): Promise<void> {
    const { supervisor, driver, clock } = this.#deps;
    const leaving = new AbortController();
    const late = clock.at(clock.now() + WRITTEN_WITHIN_MS, () => {
      leaving.abort(unavailable('the files could not be written in time'));
    });
    supervisor.send(id, { type: 'WORK_BEGAN', now: clock.now() });
    try {
      await Promise.all(
        files.map(({ path, content, mode }, index) =>
          driver.files
            .write({ id, path }, { content, overwrite: true, parents: true, mode }, leaving.signal)
            .catch((error: unknown) => {
              throw new FileNotWritten(index, error);
            }),
        ),
      );
    } finally {
      late();
      leaving.abort(unavailable('another file could not be written'));
      supervisor.send(id, { type: 'WORK_ENDED', now: clock.now() });
    }
  }

  /** Keeps the request in flight until the end is durable. */
  async #giveBack(id: InstanceId, mark: RequestFingerprint | undefined): Promise<void> {
    const { supervisor, clock, pendingRequests } = this.#deps;
    const end = await endDurably(this.#deps, id, 'claim-failed');
    if (isOver(end) || !mark || !isKeyed(mark)) return;
    const ended = supervisor.until(id, isOver, clock.now() + ENDED_WITHIN_MS);
    pendingRequests.add(
      mark,
      ended.then(() => undefined),
    );
  }
}

const isOver = (snapshot: SandboxSnapshot | undefined): boolean =>
  snapshot?.state !== 'running' && isEndDurable(snapshot);

class FileNotWritten extends Error {
  override readonly name = 'FileNotWritten';
  readonly index: number;

  constructor(index: number, cause: unknown) {
    super(`file ${index} of a claim was not written`, { cause });
    this.index = index;
  }
}

/** `detail` holds the fate of the claim. Returns errors of the daemon itself unchanged. */
const claimFileRefusal = (
  error: unknown,
  detail: { readonly hint: string; readonly sandboxId?: string },
): unknown => {
  if (!(error instanceof FileNotWritten)) return error;
  const why = whyOf(error.cause);
  if (!why) return error.cause;
  const field = `files[${error.index}].path`;
  return new Refusal(why.code, `${field}: ${why.message}`, {
    detail: { field, ...detail },
    retryAfter: why.retryAfter,
  });
};

const whyOf = (error: unknown): Refusal | undefined => {
  if (error instanceof Refusal) return error;
  if (error instanceof FileRefused) {
    // The caller adds the claim's field.
    if (error.problem === 'bad-path') return new Refusal('INVALID_ARGUMENT', error.message);
    // Writes overwrite files, so a parent is not a folder.
    if (error.problem === 'exists') return fileConflict('a part of the path is not a folder');
    const told = fileRefusalOf(error, undefined);
    return told instanceof Refusal ? told : undefined;
  }
  if (error instanceof InstanceGone || error instanceof ContainerGone)
    return unavailable('the sandbox ended before the write; claim again');
  if (error instanceof OutcomeUnknown)
    return unavailable('the connection to the sandbox was lost during the write');
  if (error instanceof NotJoinable) return unavailable(error.message);
  return error instanceof NotDone ? unavailable(error.told, error.retryAfterSeconds) : undefined;
};
