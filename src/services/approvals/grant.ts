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
  /** Somebody set out to bring it about before: it may be there, or may have been. */
  readonly mayBeDone: boolean;
}

/** Tells of an effect that there may be any number of. */
export const NOT_FOR_ONCE: EffectUnderGrant = { mayBeDone: false };

/** How the effect of a grant is brought about. */
export interface GrantedWork<T> {
  /**
   * Repeated under the approval's id it has the same effect. What can't be repeated
   * is tried once, whatever comes of it.
   */
  readonly isRepeatable: boolean;
  readonly carryOut: (use: EffectUnderGrant) => Promise<T> | T;
  /** Whether the error says that there was no effect, and never will be. */
  readonly hadNoEffect: (error: unknown) => boolean;
}

/** An approval that a request was found to have. */
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

  /** It is good for one effect. */
  get isForOnce(): boolean {
    return this.#record.scope !== 'session';
  }

  /**
   * Uses the grant up and brings its effect about. The note that it is used is durable first; what
   * died between the two is repeated under the same id, so that the effect is there once. What can
   * be repeated is to be settled once its answer is kept. Refuses with CONFLICT where another
   * request used it.
   */
  async use<T>({ isRepeatable, carryOut, hadNoEffect }: GrantedWork<T>): Promise<T> {
    if (!this.isForOnce) {
      await this.#requireStanding();
      return await carryOut(NOT_FOR_ONCE);
    }
    const taken = await this.#take(isRepeatable);
    // One that took over does not know what came of the first attempt.
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
   * Notes that the effect is there, and its answer known. Never rejects: a repetition finds the
   * effect, too.
   */
  async settle(): Promise<void> {
    if (!this.isForOnce) return;
    try {
      const { mirror, clock } = this.#deps;
      await settleApproval(mirror, clock.now())(this.id);
    } catch (error) {
      this.#deps.log.warn({ id: this.id, error }, 'use of an approval not recorded');
    }
  }

  /** Asks the store, too: where that is away nothing passes. */
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

  /** Unless somebody took it over. */
  async #giveBack(taken: ApprovalRecord): Promise<void> {
    try {
      await this.#deps.approvals.update(givenBack(taken));
    } catch (error) {
      this.#deps.log.warn({ id: this.id, error }, 'approval not returned for another use');
    }
  }
}
