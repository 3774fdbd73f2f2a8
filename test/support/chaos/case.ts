import type { Call, Evidence, Moment } from './history.ts';
import { excusedIn } from './excused.ts';
import { livesOf, type Life, type Lives } from './lives.ts';
import { Timeline } from './timeline.ts';

/** The evidence, put in order for the promises to be looked at. */
export interface Case extends Evidence, Lives {
  readonly time: Timeline;
  /** What is and was there, excused or not: to be counted. */
  readonly all: Lives;
  /** Every call, excused or not: what was asked for may have its effect. */
  readonly everyCall: readonly Call[];
  /** By sandbox: the calls that were about it, and the claims that it was the answer to. */
  readonly about: ReadonlyMap<string, readonly Call[]>;
  /** By sandbox: when its end was asked for. */
  readonly deletes: ReadonlyMap<string, readonly Moment[]>;
  /** By the uid of a pool: when it was first to be deleted with force. */
  readonly forced: ReadonlyMap<string, Moment>;
}

/** Without what nothing can be said about: `excusedIn` says why. */
export const caseOf = (evidence: Evidence): Case => {
  const time = new Timeline(evidence.sightings);
  const all = livesOf(evidence.changes);
  const isExcused = excusedIn(evidence, { ...all, time });
  const instances = new Map([...all.instances].filter(([, life]) => !isExcused.instance(life)));
  const pools = new Map([...all.pools].filter(([key]) => !isExcused.name('pool', key)));
  const envs = new Map([...all.envs].filter(([key]) => !isExcused.name('env', key)));
  const approvals = new Map([...all.approvals].filter(([key]) => !isExcused.name('approval', key)));
  const calls = evidence.calls.filter((call) => !isExcused.call(call));
  const deletes = new Map<string, Moment[]>();
  for (const { asked, invoked } of evidence.calls)
    if (asked.what === 'delete') deletes.set(asked.id, [...(deletes.get(asked.id) ?? []), invoked]);
  const about = new Map<string, Call[]>();
  for (const call of calls) {
    const id =
      'id' in call.asked
        ? call.asked.id
        : call.asked.what === 'claim'
          ? call.answer?.id
          : undefined;
    if (id === undefined) continue;
    const of = about.get(id);
    if (of) of.push(call);
    else about.set(id, [call]);
  }
  return {
    ...evidence,
    calls,
    everyCall: evidence.calls,
    instances,
    pools,
    envs,
    approvals,
    all,
    time,
    about,
    deletes,
    forced: forcedIn(evidence.calls, all.pools),
  };
};

const forcedIn = (calls: readonly Call[], pools: Lives['pools']): ReadonlyMap<string, Moment> => {
  const forced = new Map<string, Moment>();
  for (const { asked, user, invoked } of calls) {
    if (asked.what !== 'delete-pool' || asked.force !== true) continue;
    for (const { state } of pools.get(`${user.split('/')[0]}/${asked.pool}`)?.states ?? []) {
      if (state?.poolUid !== undefined)
        forced.set(state.poolUid, Math.min(invoked, forced.get(state.poolUid) ?? Infinity));
    }
  }
  return forced;
};

/** What a call says of itself, for a reader of violations. */
export const said = ({ user, replica, asked, invoked, completed, answer }: Call): string => {
  const { what: _what, ...terms } = asked;
  const what = Object.values(terms).map(String).join(' ');
  const outcome = answer
    ? `${answer.status} ${answer.errorCode ?? answer.shows ?? ''} ${answer.id ?? ''}`.trim()
    : 'unknown';
  return `${asked.what} ${what} by ${user} at replica ${replica}, ${invoked.toFixed(0)}-${completed.toFixed(0)}: ${outcome}`;
};

export const isAcknowledged = ({ answer }: Call): boolean =>
  answer !== undefined && answer.status >= 200 && answer.status < 300;

/** It ran through the whole call, as far as the store can prove. */
export const ranThrough = ({ time }: Case, life: Life, { invoked, completed }: Call): boolean =>
  life.spans.some(
    ({ state, from, to }) =>
      state === 'running' &&
      time.latest(from) <= invoked &&
      (to === Infinity || time.earliest(to) >= completed),
  );

export const describeLife = ({ time }: Case, { spans, claims, ended }: Life): string =>
  [
    ...spans.map(
      ({ state, from }) =>
        `${state} from revision ${from} (${time.earliest(from).toFixed(0)}-${time.latest(from).toFixed(0)})`,
    ),
    ...claims.map(
      ({ owner, revision, mark }) =>
        `claimed by ${owner}${mark === undefined ? '' : ` under ${mark}`} at revision ${revision}`,
    ),
    ...(ended === undefined ? [] : [`over at revision ${ended}`]),
  ].join(', ');
