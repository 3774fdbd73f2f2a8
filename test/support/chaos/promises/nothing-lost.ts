import { askedToEnd, describeLife, isAcknowledged, ranThrough, said, type Case } from '../case.ts';
import type { Call } from '../history.ts';

/** What was answered with 2xx was durable by then, and what runs is found. */
export const nothingLost = (seen: Case): readonly string[] =>
  [...seen.calls.filter(isAcknowledged).flatMap((call) => notDurable(seen, call) ?? []), ...notFound(seen)];

const notDurable = (seen: Case, call: Call): string | undefined => {
  const { instances, pools, time } = seen;
  const { asked, answer, completed, user } = call;
  const inTime = (revision: number | undefined): boolean => revision !== undefined && time.earliest(revision) <= completed;
  if (asked.what === 'claim') {
    const life = answer?.id === undefined ? undefined : instances.get(answer.id);
    if (!life || !inTime(life.claims[0]?.revision)) return `acknowledged before it was durable: ${said(call)}`;
  }
  if (asked.what === 'delete') {
    const life = instances.get(asked.id);
    if (!life || life.spans.at(-1)?.state !== 'ended') return `acknowledged, and it lives on: ${said(call)}`;
    if (!inTime(life.spans.at(-1)?.from)) return `acknowledged before it was durable: ${said(call)}`;
  }
  if (asked.what === 'create-pool' || asked.what === 'delete-pool') {
    const states = pools.get(`${user.split('/')[0]}/${asked.pool}`)?.states ?? [];
    const done = asked.what === 'create-pool' ? states.find(({ state }) => state) : states.find(({ state }, n) => (n > 0 && !state) || state?.deleting);
    if (!done || !inTime(done.revision)) return `acknowledged before it was durable: ${said(call)}`;
    if (asked.what === 'delete-pool' && states.at(-1)?.state) return `acknowledged, and it is still there: ${said(call)}`;
    const asks = seen.calls.filter((other) => other.asked.what === 'delete-pool' && other.asked.pool === asked.pool && other.user === user);
    if (asked.what === 'create-pool' && !states.at(-1)?.state && asks.length === 0) return `it is gone, and nobody deleted it: ${said(call)}`;
  }
  return undefined;
};

/** Answers that deny a sandbox that ran all the while, and that nobody had asked to end. */
const notFound = (seen: Case): readonly string[] => seen.calls.flatMap((call) => {
  const { asked, answer } = call;
  if (!('id' in asked) || !answer || !denies(asked.what, answer.status, answer.shows)) return [];
  const life = seen.instances.get(asked.id);
  if (!life || askedToEnd(seen, asked.id) < call.completed || !ranThrough(seen, life, call)) return [];
  return [`it ran all the while: ${said(call)}; ${describeLife(seen, life)}`];
});

const denies = (what: Call['asked']['what'], status: number, shows: string | undefined): boolean =>
  status === 404 || status === 409 || (what === 'get' && status === 200 && shows !== 'Running');
