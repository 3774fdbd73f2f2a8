import { SILENT_MS } from '../../../../src/k8s/sandboxes/silent-nodes.ts';
import { ETCD_RESTORED } from '../faults/set-back.ts';
import { describeLife, said, type Case } from '../case.ts';
import type { Call } from '../history.ts';
import type { Life } from '../lives.ts';

/**
 * No claim is refused while an instance is idle, unless an earlier claim waited for it or got it.
 */
export const noFalseRefusal = (seen: Case): readonly string[] => {
  const { time, pools } = seen;
  const byPool = new Map<
    string,
    { readonly since: number; readonly until: number; readonly life: Life }[]
  >();
  const edited = new Set(seen.disturbances.flatMap(({ edited: ids = [] }) => ids));
  for (const life of seen.instances.values()) {
    if (edited.has(life.id)) continue;
    for (const { state, from, to } of life.spans) {
      if (state !== 'idle') continue;
      const idle = byPool.get(life.poolUid) ?? [];
      byPool.set(life.poolUid, idle);
      idle.push({
        since: time.latest(from),
        until: to === Infinity ? Infinity : time.earliest(to),
        life,
      });
    }
  }
  return seen.calls.flatMap((call) => {
    const { asked, answer, user, invoked, completed } = call;
    if (asked.what !== 'claim' || answer?.errorCode !== 'POOL_EXHAUSTED' || mayBeSilent(seen, call))
      return [];
    const uids = (pools.get(`${user.split('/')[0]}/${asked.pool}`)?.states ?? []).flatMap(
      ({ state }) => state?.poolUid ?? [],
    );
    const idles = [...new Set(uids)]
      .flatMap((uid) => byPool.get(uid) ?? [])
      .filter(({ since, until }) => since <= invoked && until >= completed);
    const gotten = gottenDuring(seen, call);
    const idle = idles.filter(({ life }) => !gotten.has(life.id))[waitersDuring(seen, call)];
    return idle
      ? [`${said(call)}, while ${idle.life.id} was idle: ${describeLife(seen, idle.life)}`]
      : [];
  });
};

/** Their controllers restarted with the store: no idle instance is handed out for a while. */
const mayBeSilent = ({ disturbances }: Case, { invoked }: Call): boolean =>
  disturbances.some(
    ({ kind, from, to }) => kind === ETCD_RESTORED && from <= invoked && invoked <= to + SILENT_MS,
  );

/** They were reserved before they were claimed. */
const gottenDuring = ({ everyCall }: Case, call: Call): ReadonlySet<string> =>
  new Set(
    everyCall.flatMap((other) =>
      other !== call &&
      other.asked.what === 'claim' &&
      other.invoked <= call.completed &&
      other.completed >= call.invoked &&
      other.answer?.id !== undefined
        ? [other.answer.id]
        : [],
    ),
  );

const waitersDuring = ({ everyCall }: Case, call: Call): number =>
  everyCall.filter(
    (other) =>
      other.asked.what === 'claim' &&
      call.asked.what === 'claim' &&
      other !== call &&
      other.asked.pool === call.asked.pool &&
      (other.asked.waitSeconds ?? 0) > 0 &&
      namespaceOf(other) === namespaceOf(call) &&
      other.invoked <= call.completed &&
      mayWaitUntil(other) >= call.invoked,
  ).length;

const namespaceOf = ({ user }: Call): string | undefined => user.split('/')[0];

/** Without an answer, its full time; a faulty one can't announce that it leaves. */
const mayWaitUntil = ({ asked, answer, invoked, completed }: Call): number => {
  if (asked.what !== 'claim') return completed;
  if (!answer)
    return Math.max(completed, invoked + (asked.waitSeconds ?? 0) * 1_000) + LINGERING_MS;
  return answer.status === 503 ? completed + LINGERING_MS : completed;
};

/** Waiting claims of a dead replica keep their places this long. */
const LINGERING_MS = 4_000;
