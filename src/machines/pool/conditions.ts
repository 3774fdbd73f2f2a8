import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import type { BreakerStatus, PoolCounts, PoolRecord, Unresolved } from '../../model/pools/pool.ts';
import type { RolloutState } from './arithmetic.ts';

type Word = Omit<PoolCondition, 'since'>;

/** A condition of a pool or an env. */
interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

export interface ConditionsInput {
  readonly rollout: RolloutState;
  /** Starts fail in a row, and keep it from having what it should. */
  readonly failing: boolean;
  readonly breaker: BreakerStatus;
  readonly counts: PoolCounts;
  readonly updateRevision: string;
  readonly proven: boolean;
  /** Says that what its owner asked for last waits for a sync. */
  readonly held: boolean;
  readonly unresolved: Unresolved | undefined;
}

/** Tells what is to be said of a pool. */
export const conditionsOf = (input: ConditionsInput): readonly Word[] => [
  progressOf(input),
  degradationOf(input),
  resolutionOf(input),
];

/** Nothing remarkable since the pool was made. */
export const firstConditions = ({ createdAt, conditions }: PoolRecord): readonly PoolCondition[] =>
  conditions ?? [COMPLETE, AS_EXPECTED, RESOLVED].map((word) => ({ ...word, since: createdAt }));

export const isRemarkable = ({ type, status }: PoolCondition): boolean =>
  status !== (type === 'TemplateResolved' ? 'True' : 'False');

/**
 * The words with the moments since which their status has been so: the first that knows of the same
 * status knows the moment.
 */
export const heldSince = <C extends Condition>(
  words: readonly Omit<C, 'since'>[],
  known: readonly (readonly C[])[],
  now: number,
): readonly C[] => {
  const [first] = known;
  if (first?.length === words.length && words.every((word, at) => isSaidBy(first[at], word)))
    return first;
  const held = words.map((word): C => {
    const before = known
      .map((conditions) => conditions.find(({ type }) => type === word.type))
      .find((one) => one?.status === word.status);
    return before && isSaidBy(before, word)
      ? before
      : ({ ...word, since: before?.since ?? now } as C); // a word and its moment
  });
  return (
    known.find(
      (conditions) =>
        conditions.length === held.length &&
        conditions.every((condition, index) => condition === held[index]),
    ) ?? held
  );
};

const isSaidBy = (condition: Condition | undefined, word: Omit<Condition, 'since'>): boolean =>
  condition?.type === word.type &&
  condition.status === word.status &&
  condition.reason === word.reason &&
  condition.message === word.message;

/** Messages aside. */
export const sayTheSame = (some: readonly Condition[], others: readonly Condition[]): boolean =>
  some === others ||
  (some.length === others.length &&
    some.every(({ type, status, reason }) =>
      others.some(
        (other) => other.type === type && other.status === status && other.reason === reason,
      ),
    ));

const COMPLETE: Word = {
  type: 'Progressing',
  status: 'False',
  reason: 'RolloutComplete',
  message: '',
};
const HELD: Word = {
  type: 'Progressing',
  status: 'False',
  reason: 'UpdateHeld',
  message: 'autoUpdate is off: what changed waits for sync-template',
};
const AS_EXPECTED: Word = { type: 'Degraded', status: 'False', reason: 'AsExpected', message: '' };

const RESOLVED: Word = {
  type: 'TemplateResolved',
  status: 'True',
  reason: 'Resolved',
  message: '',
};

const progressOf = ({ rollout, breaker, updateRevision, proven, held }: ConditionsInput): Word => {
  switch (rollout) {
    case 'current':
      return held ? HELD : COMPLETE;
    case 'progressing':
      return {
        type: 'Progressing',
        status: 'True',
        reason: 'RollingOut',
        message:
          'instances are replaced by such of revision ' +
          `${updateRevision}${proven ? '' : ', of which the first are to show that they live'}`,
      };
    case 'blocked':
      return {
        type: 'Progressing',
        status: 'False',
        reason: 'RolloutBlocked',
        message:
          `revision ${updateRevision} does not start, what is left of older instances ` +
          `stays: ${breaker.reason}`,
      };
  }
};

const degradationOf = ({ failing, breaker, counts }: ConditionsInput): Word =>
  failing
    ? { type: 'Degraded', status: 'True', reason: 'StartsFail', message: breaker.reason }
    : counts.unavailable > 0
      ? {
          type: 'Degraded',
          status: 'True',
          reason: 'InstancesUnavailable',
          message: 'instances that were ready are not ready now',
        }
      : AS_EXPECTED;

const resolutionOf = ({ unresolved }: ConditionsInput): Word =>
  unresolved
    ? {
        type: 'TemplateResolved',
        status: 'False',
        reason: unresolved.reason,
        message: unresolved.message,
      }
    : RESOLVED;
