import { describeLife, said, type Case } from '../case.ts';
import type { Life } from '../lives.ts';

/** No claim is refused for want of an idle instance while one of the pool was idle through the whole call. */
export const noFalseRefusal = (seen: Case): readonly string[] => {
  const { time, pools } = seen;
  const byPool = new Map<string, { readonly since: number; readonly until: number; readonly life: Life }[]>();
  for (const life of seen.instances.values()) {
    for (const { state, from, to } of life.spans) {
      if (state !== 'idle') continue;
      const idle = byPool.get(life.poolUid) ?? [];
      byPool.set(life.poolUid, idle);
      idle.push({ since: time.latest(from), until: to === Infinity ? Infinity : time.earliest(to), life });
    }
  }
  return seen.calls.flatMap((call) => {
    const { asked, answer, user, invoked, completed } = call;
    if (asked.what !== 'claim' || answer?.errorCode !== 'POOL_EXHAUSTED') return [];
    const uids = (pools.get(`${user.split('/')[0]}/${asked.pool}`)?.states ?? []).flatMap(({ state }) => state?.poolUid ?? []);
    const idle = [...new Set(uids)].flatMap((uid) => byPool.get(uid) ?? []).find(({ since, until }) => since <= invoked && until >= completed);
    return idle ? [`${said(call)}, while ${idle.life.id} was idle: ${describeLife(seen, idle.life)}`] : [];
  });
};
