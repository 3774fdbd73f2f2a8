import { askedToEnd } from '../asked-to-end.ts';
import { describeLife, isAcknowledged, ranThrough, said, type Case } from '../case.ts';
import type { Call } from '../history.ts';

/** A 2xx was durable, and running sandboxes are found. */
export const nothingLost = (seen: Case): readonly string[] => [
  ...seen.calls.filter(isAcknowledged).flatMap((call) => notDurable(seen, call) ?? []),
  ...notFound(seen),
];

const notDurable = (seen: Case, call: Call): string | undefined => {
  const { instances, time } = seen;
  const { asked, answer, completed } = call;
  const inTime = (revision: number | undefined): boolean =>
    revision !== undefined && time.earliest(revision) <= completed;
  if (asked.what === 'claim') {
    const life = answer?.id === undefined ? undefined : instances.get(answer.id);
    if (!life || !inTime(life.claims[0]?.revision))
      return `acknowledged before it was durable: ${said(call)}`;
  }
  if (asked.what === 'delete') {
    const life = instances.get(asked.id);
    if (!life || life.spans.at(-1)?.state !== 'ended')
      return `acknowledged, and it lives on: ${said(call)}`;
    if (!inTime(life.spans.at(-1)?.from))
      return `acknowledged before it was durable: ${said(call)}`;
  }
  if (asked.what === 'create-pool' || asked.what === 'delete-pool')
    return poolNotDurable(seen, call);
  if (asked.what === 'resize-pool') {
    const states = seen.pools.get(keyOf(call, asked.pool))?.states ?? [];
    if (!stoodDuring(seen, call, { states, is: ({ replicas }) => replicas === asked.replicas }))
      return `acknowledged, and it did not stand meanwhile: ${said(call)}`;
  }
  if (asked.what === 'create-env' || asked.what === 'label-env') {
    const states = seen.envs.get(keyOf(call, asked.env))?.states ?? [];
    const label = asked.what === 'label-env' ? asked.label : undefined;
    if (
      !stoodDuring(seen, call, { states, is: (env) => label === undefined || env.label === label })
    )
      return `acknowledged, and it did not stand meanwhile: ${said(call)}`;
  }
  if (asked.what === 'delete-env') {
    const states = seen.envs.get(keyOf(call, asked.env))?.states ?? [];
    const done = states.find(({ state }, n) => (n > 0 && !state) || state?.deleting);
    if (!done || !inTime(done.revision)) return `acknowledged before it was durable: ${said(call)}`;
    if (states.at(-1)?.state) return `acknowledged, and it is still there: ${said(call)}`;
  }
  return undefined;
};

const poolNotDurable = ({ pools, time, everyCall }: Case, call: Call): string | undefined => {
  const { asked, user, completed } = call;
  if (asked.what !== 'create-pool' && asked.what !== 'delete-pool') return undefined;
  const { what, pool } = asked;
  const states = pools.get(keyOf(call, pool))?.states ?? [];
  const done =
    what === 'create-pool'
      ? states.find(({ state }) => state)
      : states.find(({ state }, n) => (n > 0 && !state) || state?.deleting);
  if (!done || time.earliest(done.revision) > completed)
    return `acknowledged before it was durable: ${said(call)}`;
  if (what === 'delete-pool')
    return states.at(-1)?.state ? `acknowledged, and it is still there: ${said(call)}` : undefined;
  const isAsked = everyCall.some(
    (other) =>
      other.asked.what === 'delete-pool' && other.asked.pool === pool && other.user === user,
  );
  return !states.at(-1)?.state && !isAsked
    ? `it is gone, and nobody deleted it: ${said(call)}`
    : undefined;
};

interface Standing<S> {
  readonly states: readonly { readonly revision: number; readonly state?: S }[];
  readonly is: (state: S) => boolean;
}

/** Whether such a state may have existed during the call. */
const stoodDuring = <S>(
  { time }: Case,
  { invoked, completed }: Call,
  { states, is }: Standing<S>,
): boolean =>
  states.some(({ revision, state }, n) => {
    const next = states[n + 1];
    return (
      state !== undefined &&
      is(state) &&
      time.earliest(revision) <= completed &&
      (next === undefined || time.latest(next.revision) >= invoked)
    );
  });

/** Nobody requested its end. */
const notFound = (seen: Case): readonly string[] =>
  seen.calls.flatMap((call) => {
    const { asked, answer } = call;
    if ((asked.what === 'get-pool' || asked.what === 'get-env') && answer?.status === 404) {
      const stood =
        asked.what === 'get-pool'
          ? stoodThrough(seen, call, seen.pools.get(keyOf(call, asked.pool))?.states)
          : stoodThrough(seen, call, seen.envs.get(keyOf(call, asked.env))?.states);
      return stood ? [`it was there all the while: ${said(call)}`] : [];
    }
    if (!('id' in asked) || !answer || !denies(asked.what, answer.status, answer.shows)) return [];
    const life = seen.instances.get(asked.id);
    if (!life || askedToEnd(seen, asked.id) < call.completed || !ranThrough(seen, life, call))
      return [];
    return [`it ran all the while: ${said(call)}; ${describeLife(seen, life)}`];
  });

const keyOf = ({ user }: Call, name: string): string => `${user.split('/')[0]}/${name}`;

interface Named {
  readonly revision: number;
  readonly state?: { readonly deleting: boolean; readonly owner?: string };
}

/** Provably. A record that no daemon has settled belongs to nobody. */
const stoodThrough = (
  { time }: Case,
  { invoked, completed }: Call,
  states: readonly Named[] = [],
): boolean =>
  states.some(({ revision, state }, n) => {
    if (!state || state.deleting || state.owner === '' || time.latest(revision) > invoked)
      return false;
    const over = states.slice(n + 1).find(({ state: later }) => !later || later.deleting);
    return over === undefined || time.earliest(over.revision) >= completed;
  });

const denies = (what: Call['asked']['what'], status: number, shows: string | undefined): boolean =>
  status === 404 || status === 409 || (what === 'get' && status === 200 && shows !== 'Running');
