import type { ApprovalMirror } from '../../actors/approval/approval-mirror.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import type { Records } from '../../contracts/record-store.ts';
import { givenBack, isExpired, used } from '../../model/approvals/approval-changes.ts';
import {
  ApprovalUsed,
  EffectIsOver,
  sessionOver,
} from '../../model/approvals/approval-refusals.ts';
import type { ApprovalRecord } from '../../model/approvals/approval.ts';
import { settleApproval } from './approval-writer.ts';

export interface GrantDeps {
  readonly approvals: Pick<Records<ApprovalRecord>, 'update'>;
  readonly mirror: ApprovalMirror;
  readonly clock: Clock;
  readonly log: Log;
}

export interface EffectUnderGrant {
  /** An earlier attempt's effect may exist, or may have existed. */
  readonly mayBeDone: boolean;
}

/** For an effect that may happen any number of times. */
export const NOT_FOR_ONCE: EffectUnderGrant = { mayBeDone: false };

export interface GrantedWork<T> {
  /**
   * A repeat under the approval's id has the same effect. Other work is attempted once, whatever
   * its outcome.
   */
  readonly isRepeatable: boolean;
  readonly carryOut: (use: EffectUnderGrant) => Promise<T> | T;
  /** Whether the error proves that there was no effect and never will be. */
  readonly hadNoEffect: (error: unknown) => boolean;
}

export class Grant {
  readonly #deps: GrantDeps;
  readonly #record: ApprovalRecord;

  constructor(deps: GrantDeps, record: ApprovalRecord) {
    this.#deps = deps;
    this.#record = record;
  }

  get id(): string {
    return this.#record.id;
  }

  get isForOnce(): boolean {
    return this.#record.scope !== 'session';
  }

  /**
   * The use is durable before the effect begins. After a crash in between, the work is repeated
   * under the same id, so the effect happens once. Callers of repeatable work call `settle` once
   * its answer is stored. Refuses with CONFLICT if another request used the grant.
   */
  async use<T>({ isRepeatable, carryOut, hadNoEffect }: GrantedWork<T>): Promise<T> {
    if (!this.isForOnce) {
      await this.#requireStanding();
      return await carryOut(NOT_FOR_ONCE);
    }
    const taken = await this.#take(isRepeatable);
    // A request that took over does not know the outcome of the first attempt.
    const isFirst = taken.use?.attempt === 1;
    try {
      return await carryOut({ mayBeDone: !isFirst });
    } catch (error) {
      if (error instanceof EffectIsOver) await this.settle();
      else if (isRepeatable && isFirst && hadNoEffect(error)) await this.#giveBack(taken);
      throw error;
    }
  }

  /**
   * Call it once the effect exists and its answer is known. Never rejects: a repeat finds the
   * effect, too.
   */
  async settle(): Promise<void> {
    if (!this.isForOnce) return;
    try {
      const { mirror, clock } = this.#deps;
      await settleApproval(mirror, clock.now())(this.id);
    } catch (error) {
      this.#deps.log.warn({ id: this.id, error }, 'approval-use-not-recorded');
    }
  }

  /** Also reads the store: if it is unreachable, nothing passes. */
  async #requireStanding(): Promise<void> {
    const record = await this.#deps.mirror.whole(this.id);
    const stands = record?.status === 'approved' && !isExpired(record, this.#deps.clock.now());
    if (!stands) throw sessionOver(this.id);
  }

  async #take(isRepeatable: boolean): Promise<ApprovalRecord> {
    const now = this.#deps.clock.now();
    const taken = await this.#deps.mirror.amend(this.id, (record) => {
      const isGranted = record.status === 'approved' && !isExpired(record, now);
      const isLeft = isRepeatable && record.use?.settled === false;
      if (!isGranted && !isLeft) throw new ApprovalUsed(this.id);
      return used(record, now, !isRepeatable);
    });
    if (!taken) throw new ApprovalUsed(this.id);
    return taken;
  }

  async #giveBack(taken: ApprovalRecord): Promise<void> {
    try {
      await this.#deps.approvals.update(givenBack(taken));
    } catch (error) {
      this.#deps.log.warn({ id: this.id, error }, 'approval-not-returned');
    }
  }
}
