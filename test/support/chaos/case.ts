import type { Call, Evidence, Moment } from './history.ts';
import { excusedIn } from './excused.ts';
import { livesOf, type Life, type Lives } from './lives.ts';
import { Timeline } from './timeline.ts';

/** Evidence, indexed for checking the promises. */
export interface Case extends Evidence, Lives {
  readonly time: Timeline;
  /** Also excused ones. */
  readonly all: Lives;
  /** Excused requests may take effect. */
  readonly everyCall: readonly Call[];
  /** Calls about a sandbox, and the claims that returned it. */
  readonly about: ReadonlyMap<string, readonly Call[]>;
  /** Requests to end a sandbox. */
  readonly deletes: ReadonlyMap<string, readonly Moment[]>;
  /** First forced delete, by a pool's uid. */
  readonly forced: ReadonlyMap<string, Moment>;
}

/** Omits everything undecidable; see `excusedIn`. */
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

/** Provably ran through the whole call. */
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
