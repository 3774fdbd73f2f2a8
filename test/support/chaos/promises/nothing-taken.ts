import { longestWithout } from '../calm.ts';
import { type Case, describeLife, said } from '../case.ts';
import type { Call } from '../history.ts';
import type { Life } from '../lives.ts';

/** After its acknowledged delete, without running sandboxes. */
const GONE_MS = 10_000;
/** A claim takes less if nothing is wrong. */
const CLAIM_MS = 4_000;

/**
 * No reservation outlives its claim: a deleted pool goes once nothing runs, and at rest no claim
 * waits or is refused while an instance is idle.
 */
export const nothingTaken = (seen: Case): readonly string[] => [
  ...poolsThatStay(seen),
  ...claimsThatWait(seen),
];

const poolsThatStay = (seen: Case): readonly string[] => {
  const byPool = new Map<string, Life[]>();
  for (const life of seen.all.instances.values())
    byPool.set(life.poolUid, [...(byPool.get(life.poolUid) ?? []), life]);
  return [...seen.pools.values()].flatMap(({ namespace, name, states }) => {
    const since = states.findIndex(({ state }) => state?.deleting === true);
    const [begun, over] = [
      states[since],
      states.slice(since + 1).find(({ state }) => state?.deleting !== true)?.revision ?? Infinity,
    ];
    const uid = begun?.state?.poolUid;
    if (!begun || uid === undefined) return [];
    const running = (byPool.get(uid) ?? []).flatMap(({ spans }) =>
      spans.filter(({ state }) => state === 'running'),
    );
    return seen.rests.flatMap((rest) => {
      if (over < seen.time.between(rest.from, rest.until).first) return [];
      const withoutMs = longestWithout(rest, ({ asked, answered }) => {
        const { first, last } = seen.time.between(asked, answered);
        return (
          begun.revision > first ||
          over <= last ||
          running.some(({ from, to }) => from <= last && to > first)
        );
      });
      return withoutMs < GONE_MS
        ? []
        : [
            `${namespace}/${name} was deleted at revision ${begun.revision} and still there for ${withoutMs.toFixed(0)} ms of calm, in ${rest.from.toFixed(0)}-${rest.until.toFixed(0)}`,
          ];
    });
  });
};

/** At rest nobody else can take the instance. */
const claimsThatWait = (seen: Case): readonly string[] =>
  seen.calls.flatMap((call) => {
    const { asked, invoked, completed, answer } = call;
    if (
      asked.what !== 'claim' ||
      !isAtRest(seen, call) ||
      (answer?.status === 201 && completed - invoked < CLAIM_MS)
    )
      return [];
    // another promise covers it
    if (answer?.errorCode === 'QUOTA_EXCEEDED' || answer?.errorCode === 'POOL_EXHAUSTED') return [];
    const idle = idleThrough(seen, call, asked.pool);
    return idle
      ? [`at rest: ${said(call)}, while ${idle.id} was idle: ${describeLife(seen, idle)}`]
      : [];
  });

const isAtRest = ({ rests }: Case, { invoked, completed }: Call): boolean =>
  rests.some(({ from, until }) => invoked >= from && completed <= until);

const idleThrough = (
  { instances, pools, time }: Case,
  { user, invoked, completed }: Call,
  pool: string,
): Life | undefined => {
  const uids = new Set(
    (pools.get(`${user.split('/')[0]}/${pool}`)?.states ?? []).flatMap(
      ({ state }) => state?.poolUid ?? [],
    ),
  );
  return [...instances.values()].find(
    (life) =>
      uids.has(life.poolUid) &&
      life.spans.some(
        ({ state, from, to }) =>
          state === 'idle' &&
          time.latest(from) <= invoked &&
          (to === Infinity || time.earliest(to) >= completed),
      ),
  );
};
