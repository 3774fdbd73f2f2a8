import type { Call, Evidence } from './history.ts';
import { livesOf, type Life, type Lives } from './lives.ts';
import { Timeline } from './timeline.ts';

/** The evidence, put in order for the promises to be looked at. */
export interface Case extends Evidence, Lives {
  readonly time: Timeline;
  /** By sandbox: the calls that were about it, and the claims that it was the answer to. */
  readonly about: ReadonlyMap<string, readonly Call[]>;
}

export const caseOf = (evidence: Evidence): Case => {
  const about = new Map<string, Call[]>();
  for (const call of evidence.calls) {
    const id = 'id' in call.asked ? call.asked.id : call.asked.what === 'claim' ? call.answer?.id : undefined;
    if (id === undefined) continue;
    const calls = about.get(id);
    if (calls) calls.push(call);
    else about.set(id, [call]);
  }
  return { ...evidence, ...livesOf(evidence.changes), time: new Timeline(evidence.sightings), about };
};

/** What a call says of itself, for a reader of violations. */
export const said = ({ user, replica, asked, invoked, completed, answer }: Call): string => {
  const what = 'id' in asked ? asked.id : `${asked.pool}${asked.what === 'claim' && asked.key !== undefined ? ` (key ${asked.key})` : ''}`;
  const outcome = answer ? `${answer.status} ${answer.errorCode ?? answer.shows ?? ''} ${answer.id ?? ''}`.trim() : 'unknown';
  return `${asked.what} ${what} by ${user} at replica ${replica}, ${invoked.toFixed(0)}-${completed.toFixed(0)}: ${outcome}`;
};

export const isAcknowledged = ({ answer }: Call): boolean => answer !== undefined && answer.status >= 200 && answer.status < 300;

/** When it was first asked for, by anybody, that the sandbox ends; Infinity: never. */
export const askedToEnd = ({ about, disturbances }: Case, id: string): number => {
  const deletes = (about.get(id) ?? []).filter(({ asked }) => asked.what === 'delete').map(({ invoked }) => invoked);
  const byHand = disturbances.filter(({ removed }) => removed.includes(id)).map(({ from }) => from);
  return Math.min(Infinity, ...deletes, ...byHand);
};

/** It ran through the whole call, as far as the store can prove. */
export const ranThrough = ({ time }: Case, life: Life, { invoked, completed }: Call): boolean =>
  life.spans.some(({ state, from, to }) => state === 'running' && time.latest(from) <= invoked && (to === Infinity || time.earliest(to) >= completed));

export const describeLife = ({ time }: Case, { spans, claims, ended }: Life): string => [
  ...spans.map(({ state, from }) => `${state} from revision ${from} (${time.earliest(from).toFixed(0)}-${time.latest(from).toFixed(0)})`),
  ...claims.map(({ owner, revision, mark }) => `claimed by ${owner}${mark === undefined ? '' : ` under ${mark}`} at revision ${revision}`),
  ...(ended === undefined ? [] : [`over at revision ${ended}`]),
].join(', ');
