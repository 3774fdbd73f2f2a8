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

const RENEW_AGAIN_MS = 10_000;

/** Repeated in case the first request is lost. */
const ASK_PLACE_AGAIN_MS = 10_000;

const SAVE_CONDITIONS_MS = 10_000;

export interface Decision {
  readonly change: Partial<PoolContext>;
  readonly intents: readonly PoolIntent[];
}

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
      // A deleted pool only waits for its removal.
      deadline: known.record.deleting === false ? wakes : known.deadline,
    },
    intents,
  };
};

const againAt = (
  { lacksPlaces, renews }: { readonly lacksPlaces: boolean; readonly renews: boolean },
  now: number,
): number | undefined =>
  earliest(
    lacksPlaces ? now + ASK_PLACE_AGAIN_MS : undefined,
    renews ? now + RENEW_AGAIN_MS : undefined,
  );

/** All idle instances have lived long enough, or one was claimed. */
export const provenIn = (
  { proven, provenAt, updated, lived, record }: PoolContext,
  now: number,
): Pick<PoolContext, 'proven' | 'lived'> =>
  proven || updated.running > 0 || (updated.idle > 0 && now >= provenAt)
    ? { proven: true, lived: record.definition }
    : { proven: false, lived };

export const isNewsThatStarts = (
  { record, proven, lived, breaker }: PoolContext,
  revision: string,
): boolean =>
  revision === record.updateRevision &&
  !(proven && lived === record.definition && breaker.failures === 0 && breaker.pausedUntil === 0);

export const surplusOf = (context: PoolContext): number =>
  Math.max(0, Math.min(-shortageOf(context), unclaimedOf(context.counts)));

/**
 * Unready instances go one by one, each after the previous one has a ready replacement: a common
 * cause would affect new ones too.
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

export const replaceableOf = (context: PoolContext, now: number): RolloutPlan => {
  const { record, policy, counts, updated, ordered, breaker, provenAt } = context;
  const { proven } = provenIn(context, now);
  const missing = shortageOf(context);
  if (!context.leading || record.deleting !== false || missing < 0) return NONE;
  // Earlier ones still lack a replacement, for want of a place.
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

export const waitsForPlace = (context: PoolContext, now: number): boolean =>
  isPaced(context) &&
  planScale({ ...scaleOf(context, now), places: 0 }, context.policy).lacksPlaces;

export const isTripped = ({ breaker, policy }: PoolContext): boolean =>
  breaker.failures >= policy.breaker.failures;

export const rolloutStateOf = (context: PoolContext): RolloutState =>
  !context.rolling ? 'current' : isTripped(context) ? 'blocked' : 'progressing';

/** Saved times win, also on the leader, which may have seen another time before it led. */
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

/** A record without conditions means that nothing is remarkable. */
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

interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
  readonly since: number;
}

interface ConditionsInput {
  readonly rollout: RolloutState;
  readonly failing: boolean;
  readonly breaker: BreakerStatus;
  readonly counts: PoolCounts;
  readonly updateRevision: string;
  readonly proven: boolean;
  /** The owner's last change waits for a sync. */
  readonly held: boolean;
  readonly unresolved: Unresolved | undefined;
}

const conditionsOf = (input: ConditionsInput): readonly Word[] => [
  progressOf(input),
  degradationOf(input),
  resolutionOf(input),
];

export const firstConditions = ({ createdAt, conditions }: PoolRecord): readonly PoolCondition[] =>
  conditions ?? [COMPLETE, AS_EXPECTED, RESOLVED].map((word) => ({ ...word, since: createdAt }));

const isRemarkable = ({ type, status }: PoolCondition): boolean =>
  status !== (type === 'TemplateResolved' ? 'True' : 'False');

/** An earlier record of the same status keeps its time. */
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

/** Compares everything but messages. */
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
  message: 'autoUpdate is off: changes wait for sync-template',
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
          `instances are being replaced with revision ${updateRevision}` +
          (proven ? '' : '; the first of them must become ready'),
      };
    case 'blocked':
      return {
        type: 'Progressing',
        status: 'False',
        reason: 'RolloutBlocked',
        message:
          `revision ${updateRevision} does not start, and older instances remain: ` +
          breaker.reason,
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
