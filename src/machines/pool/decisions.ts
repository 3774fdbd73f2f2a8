import {
  needsPlace,
  planScale,
  presentOf,
  refilled,
  unclaimedOf,
  planRollout,
  staleOf,
  type RolloutPlan,
  type RolloutState,
  type ScaleInput,
} from './arithmetic.ts';
import type { PoolContext, PoolIntent } from './events.ts';
import type { PoolCondition } from '../../model/pools/pool-condition.ts';
import type { BreakerStatus, PoolCounts, PoolRecord, Unresolved } from '../../model/pools/pool.ts';

/** While instances are not ready it is looked so often whether one of them should go. */
const RENEW_AGAIN_MS = 10_000;

/** A pool that waits for a place asks again after this, should its first request be lost. */
const ASK_PLACE_AGAIN_MS = 10_000;

/** Writes of conditions are at least so far apart. */
const SAVE_CONDITIONS_MS = 10_000;

/** Decides what follows from what is known now; intents only while this replica leads. */
export interface Decision {
  readonly change: Partial<PoolContext>;
  readonly intents: readonly PoolIntent[];
}

/** `place`: there is a place for one instance that needs one. */
export const decisionOf = (
  context: PoolContext,
  now: number,
  place: 'no place' | 'a place' = 'no place',
): Decision => {
  const filledOnce = context.filledOnce || isFilled(context);
  const rolling = isRolling(context);
  const proof = provenIn(context, now);
  const known = { ...context, rolling, ...proof };
  const conditions = judgedOf(known, now);
  if (!context.leading)
    return { change: { filledOnce, rolling, conditions, ...proof }, intents: [] };
  const places = isPaced(known) ? { places: Number(place === 'a place') } : {};
  const scale = planScale({ ...scaleOf(known, now), ...places }, known.policy);
  const { launch, lacksPlaces, retire, bucket, wakeAt } = scale;
  const ordered = known.ordered + launch;
  const replacement =
    staleOf(known.counts, known.updated) > 0
      ? replaceableOf({ ...known, ordered, bucket }, now)
      : NONE;
  const saving = savingOf(known, conditions, now);
  const intents: PoolIntent[] = [];
  if (launch > 0) intents.push({ type: 'launch', count: launch });
  if (lacksPlaces) intents.push({ type: 'await-place' });
  if (retire > 0) intents.push({ type: 'trim' });
  if (countOf(replacement) > 0) intents.push({ type: 'replace' });
  const renews = mayRenew({ ...known, ordered }, now);
  if (renews) intents.push({ type: 'renew' });
  if (saving.due) intents.push({ type: 'save-conditions', conditions });
  const again = againAt({ lacksPlaces, renews }, now);
  const wakes = earliest(wakeAt, replacement.wakeAt, saving.wakeAt, again);
  return {
    change: {
      filledOnce,
      rolling,
      conditions,
      ...proof,
      ordered,
      bucket,
      savedAt: saving.due ? now : known.savedAt,
      // One that is deleted waits for its removal alone.
      deadline: known.record.deleting === false ? wakes : known.deadline,
    },
    intents,
  };
};

/** Says when to ask again for what was asked, should nobody answer. */
const againAt = (
  { lacksPlaces, renews }: { readonly lacksPlaces: boolean; readonly renews: boolean },
  now: number,
): number | undefined =>
  earliest(
    lacksPlaces ? now + ASK_PLACE_AGAIN_MS : undefined,
    renews ? now + RENEW_AGAIN_MS : undefined,
  );

/**
 * Tells what is known by now of whether instances live: all that idle have done so for long enough,
 * or one was claimed.
 */
export const provenIn = (
  { proven, provenAt, updated, lived, record }: PoolContext,
  now: number,
): Pick<PoolContext, 'proven' | 'lived'> =>
  proven || updated.running > 0 || (updated.idle > 0 && now >= provenAt)
    ? { proven: true, lived: record.definition }
    : { proven: false, lived };

/** Whether a pool learns anything by it that an instance of this revision has started. */
export const isNewsThatStarts = (
  { record, proven, lived, breaker }: PoolContext,
  revision: string,
): boolean =>
  revision === record.updateRevision &&
  !(proven && lived === record.definition && breaker.failures === 0 && breaker.pausedUntil === 0);

/** Counts the unclaimed instances that are too many now. */
export const surplusOf = (context: PoolContext): number =>
  Math.max(0, Math.min(-shortageOf(context), unclaimedOf(context.counts)));

/**
 * Whether one that stays not ready may be replaced now. They go one by one, each when the one
 * before has been replaced by one that is ready: what keeps all of them from that would keep new
 * ones too.
 */
export const mayRenew = (context: PoolContext, now: number): boolean => {
  const {
    leading,
    record,
    counts: { starting, retiring, unavailable },
    ordered,
    breaker,
    rolling,
  } = context;
  const isCalm =
    starting + ordered + retiring === 0 &&
    breaker.pausedUntil <= now &&
    !isTripped(context) &&
    !rolling;
  return (
    leading && record.deleting === false && unavailable > 0 && isCalm && shortageOf(context) === 0
  );
};

/** Says how many of older revisions may be retired now, so that they are replaced at once. */
export const replaceableOf = (context: PoolContext, now: number): RolloutPlan => {
  const { record, policy, counts, updated, ordered, breaker, provenAt } = context;
  const { proven } = provenIn(context, now);
  const missing = shortageOf(context);
  if (!context.leading || record.deleting !== false || missing < 0) return NONE;
  // Those before have not been replaced for want of a place.
  if (isPaced(context) && missing > counts.retiring) return NONE;
  const wanted = record.replicas - (policy.replicaSemantics === 'total' ? counts.running : 0);
  const bucket = refilled(context.bucket, now, policy.refill);
  return planRollout(
    {
      wanted,
      counts,
      updated,
      ordered,
      missing,
      maxUnavailable: record.updateStrategy.maxUnavailable,
      bucket,
      inFlight: context.inFlight,
      breaker,
      proven,
      provenAt,
      now,
    },
    policy,
  );
};

export const shortageOf = (context: PoolContext): number =>
  (context.record.deleting === false ? context.record.replicas : semanticZero(context)) -
  presentOf(context.counts, context.ordered, context.policy.replicaSemantics);

/** Whether the pool launches nothing only because other instances have the machine's places. */
export const waitsForPlace = (context: PoolContext, now: number): boolean =>
  isPaced(context) &&
  planScale({ ...scaleOf(context, now), places: 0 }, context.policy).lacksPlaces;

export const isTripped = ({ breaker, policy }: PoolContext): boolean =>
  breaker.failures >= policy.breaker.failures;

/** Tells how far the pool's instances are replaced by such of its revision. */
export const rolloutStateOf = (context: PoolContext): RolloutState =>
  !context.rolling ? 'current' : isTripped(context) ? 'blocked' : 'progressing';

/**
 * Judges the pool. What is saved says since when, at the leader too: that may have seen another
 * moment before it led.
 */
const judgedOf = (context: PoolContext, now: number): readonly PoolCondition[] => {
  const { record, conditions } = context;
  if (record.deleting !== false) return conditions;
  const words = conditionsOf({
    counts: context.counts,
    breaker: context.breaker,
    rollout: rolloutStateOf(context),
    failing: isTripped(context) && (context.rolling || !isFilled(context)),
    updateRevision: record.updateRevision,
    proven: context.proven,
    held: record.unrendered === true && !record.updateStrategy.autoUpdate,
    unresolved: record.unresolved,
  });
  return heldSince(words, record.conditions ? [record.conditions, conditions] : [conditions], now);
};

const isPaced = ({ record, policy }: PoolContext): boolean =>
  needsPlace(record.definition, policy.refill);

const semanticZero = (context: PoolContext): number =>
  context.policy.replicaSemantics === 'total' ? context.counts.running : 0;

const scaleOf = (context: PoolContext, now: number): ScaleInput => ({
  replicas: context.record.deleting === false ? context.record.replicas : semanticZero(context),
  counts: context.counts,
  ordered: context.ordered,
  bucket: context.bucket,
  inFlight: context.inFlight,
  breaker: context.breaker,
  now,
});

/** Whether all instances that the pool should have are there, and none is still starting. */
export const isFilled = ({ record, counts, ordered, policy }: PoolContext): boolean =>
  counts.starting + ordered === 0 &&
  presentOf(counts, 0, policy.replicaSemantics) >= record.replicas;

const isRolling = (context: PoolContext): boolean => {
  if (context.record.deleting !== false) return false;
  return staleOf(context.counts, context.updated) > 0 || (context.rolling && !isFilled(context));
};

const NONE: RolloutPlan = { starting: 0, unavailable: 0, idle: 0, wakeAt: undefined };

const countOf = ({ starting, unavailable, idle }: RolloutPlan): number =>
  starting + unavailable + idle;

interface Saving {
  readonly due: boolean;
  readonly wakeAt: number | undefined;
}
const NO_SAVING: Saving = { due: false, wakeAt: undefined };

/** Says when to save what the record doesn't say yet: at once, but not often. */
const savingOf = (
  { record, savedAt }: PoolContext,
  conditions: readonly PoolCondition[],
  now: number,
): Saving => {
  if (record.deleting !== false || sayTheSame(conditions, savedOf(record.conditions, conditions)))
    return NO_SAVING;
  const due = now >= savedAt + SAVE_CONDITIONS_MS;
  return { due, wakeAt: due ? now + SAVE_CONDITIONS_MS : savedAt + SAVE_CONDITIONS_MS };
};

/** A record that says nothing says that nothing is remarkable. */
const savedOf = (
  saved: readonly PoolCondition[] | undefined,
  now: readonly PoolCondition[],
): readonly PoolCondition[] => saved ?? (now.some(isRemarkable) ? [] : now);

const earliest = (...moments: readonly (number | undefined)[]): number | undefined => {
  let first: number | undefined;
  for (const moment of moments)
    if (moment !== undefined && (first === undefined || moment < first)) first = moment;
  return first;
};

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
