import { isAcknowledged, said } from '../case.ts';
import type { Call, Moment, Violation } from '../history.ts';

export interface Effects {
  readonly id: string;
  readonly sent: readonly { readonly mark: string; readonly isAnswered: boolean }[];
  readonly found: readonly string[];
}

/** As its own cluster knows it; `id` names the cluster. */
export interface KnownSandbox {
  readonly id: string;
  readonly name?: string;
  readonly isRunning: boolean;
}

export interface SeenKey {
  readonly keyId: string;
  readonly isGood: boolean;
  readonly answers: readonly { readonly where: string; readonly status: number }[];
}

export interface ShownMember {
  readonly name: string;
  readonly state: string;
  readonly desired: number;
  readonly current: number;
}

export interface SeenEnv {
  readonly clusterId: string;
  readonly member: string;
  readonly most: number;
  /** Envs of its name, and foreign pools, at the cluster's own address. */
  readonly copies: number;
  readonly pools: readonly { readonly name: string; readonly replicas: number }[];
  /** As the cluster and each replica of the manager show them. */
  readonly shown: readonly { readonly where: string; readonly members: readonly ShownMember[] }[];
}

/** The run ended without disturbance. */
export interface FleetEvidence {
  readonly calls: readonly Call[];
  readonly known: readonly KnownSandbox[];
  readonly listed: readonly ReadonlySet<string>[];
  readonly effects: readonly Effects[];
  readonly keys: readonly SeenKey[];
  readonly envs: readonly SeenEnv[];
  readonly linked: { readonly afterMs: number; readonly withinMs: number };
}

/** Promises that hold a while after all is calm. */
export const KEPT_LATE: readonly string[] = ['nothing lost', 'envs alike'];

export const fleetViolationsOf = (evidence: FleetEvidence): readonly Violation[] =>
  Object.entries(PROMISES).flatMap(([promise, look]) =>
    look(evidence).map((what): Violation => ({ promise, what })),
  );

interface Claimed {
  readonly name: string;
  readonly id: string;
  readonly call: Call;
}

const claimsIn = (calls: readonly Call[]): readonly Claimed[] =>
  calls.flatMap((call) => {
    const { asked, answer } = call;
    if (asked.what !== 'claim' || !isAcknowledged(call) || answer?.id === undefined) return [];
    return [{ name: asked.name ?? '', id: answer.id, call }];
  });

const handedOutOnce = ({ calls }: FleetEvidence): readonly string[] => {
  const holders = new Map<string, string>();
  return claimsIn(calls).flatMap(({ name, id }) => {
    const holder = holders.get(id) ?? name;
    holders.set(id, holder);
    return holder === name ? [] : [`${id} was handed to ${holder} and to ${name}`];
  });
};

/** However often the claim was repeated under its key. */
const oneEffectPerClaim = ({ calls, known }: FleetEvidence): readonly string[] => {
  const effects = new Map<string, Set<string>>();
  const note = (name: string, id: string): void =>
    void effects.set(name, (effects.get(name) ?? new Set()).add(id));
  for (const { name, id } of claimsIn(calls)) note(name, id);
  for (const { name, id } of known) if (name !== undefined) note(name, id);
  return [...effects].flatMap(([name, ids]) =>
    ids.size > 1 ? [`${name} claimed ${[...ids].join(' and ')}`] : [],
  );
};

/** By sandbox: the first request to end it. */
const endsIn = (calls: readonly Call[]): ReadonlyMap<string, Moment> => {
  const ends = new Map<string, Moment>();
  for (const { asked, invoked } of calls)
    if (asked.what === 'delete')
      ends.set(asked.id, Math.min(invoked, ends.get(asked.id) ?? Infinity));
  return ends;
};

const nothingLost = ({ calls, known, listed }: FleetEvidence): readonly string[] => {
  const running = new Set(known.filter(({ isRunning }) => isRunning).map(({ id }) => id));
  const ends = endsIn(calls);
  const held = new Set(claimsIn(calls).flatMap(({ id }) => (ends.has(id) ? [] : [id])));
  const lost = [...held].filter((id) => !running.has(id)).map((id) => `${id} is held, and gone`);
  const unlisted = listed.flatMap((ids, n) =>
    [...held].filter((id) => !ids.has(id)).map((id) => `replica ${n} does not list ${id}`),
  );
  const undead = calls.flatMap((call) =>
    call.asked.what === 'delete' && isAcknowledged(call) && running.has(call.asked.id)
      ? [`it runs on: ${said(call)}`]
      : [],
  );
  return [...lost, ...unlisted, ...undead];
};

/** A cut link is 503, never 404 of an existing resource. */
const nothingDenied = ({ calls }: FleetEvidence): readonly string[] => {
  const ends = endsIn(calls);
  const claimed = new Map(claimsIn(calls).map(({ id, call }) => [id, call.completed]));
  return calls.flatMap((call) => {
    const { asked, answer, invoked, completed } = call;
    if (answer?.errorCode === 'CLUSTER_NOT_FOUND') return [`the cluster is there: ${said(call)}`];
    if (answer?.status !== 404) return [];
    // no pool was deleted
    if (!('id' in asked)) return [`it was there all the while: ${said(call)}`];
    const isThere = (claimed.get(asked.id) ?? Infinity) <= invoked;
    const isAsked = (ends.get(asked.id) ?? Infinity) < completed;
    // the first request to end it finds it, unless it is carried out the second time
    const isFirst = asked.what === 'delete' && ends.get(asked.id) === invoked;
    return isThere && (!isAsked || isFirst) ? [`it ran all the while: ${said(call)}`] : [];
  });
};

const noInternalError = ({ calls }: FleetEvidence): readonly string[] =>
  calls.flatMap((call) =>
    (call.answer?.status ?? 0) >= 500 && call.answer?.status !== 503 ? [said(call)] : [],
  );

/** An answered command ran once, others at most once. */
const oneEffectPerCommand = ({ effects }: FleetEvidence): readonly string[] =>
  effects.flatMap(({ id, sent, found }) =>
    sent.flatMap(({ mark, isAnswered }) => {
      const times = found.filter((each) => each === mark).length;
      return times > 1 || (isAnswered && times < 1)
        ? [`${mark} was carried out ${times} times in ${id}`]
        : [];
    }),
  );

const keysRight = ({ keys }: FleetEvidence): readonly string[] =>
  keys.flatMap(({ keyId, isGood, answers }) =>
    answers.flatMap(({ where, status }) =>
      status === (isGood ? 200 : 401)
        ? []
        : [`${isGood ? 'promoted' : 'revoked'} ${keyId} is answered with ${status} at ${where}`],
    ),
  );

/** A saturated member is whole, but can't grow for a while. */
const WHOLE: readonly string[] = ['Active', 'Saturated'];

/** Each cluster has one copy of the env with one full pool, and both sides agree. */
const envsAlike = ({ envs }: FleetEvidence): readonly string[] =>
  envs.flatMap(({ clusterId, member, most, copies, pools, shown }) => {
    const [pool, ...others] = pools;
    if (copies !== 1) return [`${clusterId} has ${copies} copies of the env`];
    if (pool?.name !== member || others.length > 0)
      return [`${clusterId} has other pools than ${member}: ${JSON.stringify(pools)}`];
    if (pool.replicas > most)
      return [`${member} has ${pool.replicas} replicas, and may have ${most}`];
    return shown.flatMap(({ where, members }) => {
      const [one, ...more] = members;
      const isAlike =
        one?.name === member &&
        WHOLE.includes(one.state) &&
        one.desired === pool.replicas &&
        one.current === pool.replicas &&
        more.length === 0;
      return isAlike
        ? []
        : [`${where} does not show ${member} with ${pool.replicas}: ${JSON.stringify(members)}`];
    });
  });

const linkedSoon = ({ linked: { afterMs, withinMs } }: FleetEvidence): readonly string[] =>
  afterMs <= withinMs
    ? []
    : [`all links stood ${afterMs.toFixed(0)} ms after the last fault, not within ${withinMs}`];

const PROMISES = {
  'handed out once': handedOutOnce,
  'one effect per claim': oneEffectPerClaim,
  'nothing lost': nothingLost,
  'nothing denied': nothingDenied,
  'no internal error': noInternalError,
  'one effect per command': oneEffectPerCommand,
  'keys right everywhere': keysRight,
  'envs alike': envsAlike,
  'linked soon': linkedSoon,
} as const;
