import type { Dice } from '../builders/hostile-values.ts';
import type { Arena, Contender } from './arena.ts';
import { BadLink } from './faults/bad-link.ts';
import { ClockJump } from './faults/clock-jump.ts';
import { FailedOver } from './faults/failed-over.ts';
import type { Fault } from './faults/fault.ts';
import { type Flushable, Flushed } from './faults/flushed.ts';
import { insist } from './faults/insist.ts';
import { Killed, type Mortal } from './faults/killed.ts';
import { KilledInFill } from './faults/killed-in-fill.ts';
import { LabelsEdited } from './faults/labels-edited.ts';
import { NamespaceDeleted } from './faults/namespace-deleted.ts';
import { RemovedByHand } from './faults/removed-by-hand.ts';
import { RestartedWithoutRedis } from './faults/restarted-without-redis.ts';
import { SetBack, type SetBackStore } from './faults/set-back.ts';
import { StalledHandOver } from './faults/stalled-hand-over.ts';
import { Stopped } from './faults/stopped.ts';
import { UnreadyNode } from './faults/unready-node.ts';
import { WatchBehind } from './faults/watch-behind.ts';
import { type Refused, WritesRefused } from './faults/writes-refused.ts';

type Attacked = Pick<Contender['replica'], 'kill' | 'start' | 'stop' | 'signal' | 'isRunning'>;

export interface Victims {
  readonly contenders: readonly (Pick<Contender, 'toApi' | 'toRedis' | 'clock'> & {
    readonly replica: Attacked;
  })[];
  readonly controlPlane: Pick<
    Arena['controlPlane'],
    'kubectl' | 'kubectlAs' | 'kill' | 'begin' | 'apply'
  >;
  readonly redis: Pick<
    Arena['redis'],
    'kill' | 'restart' | 'signal' | 'keepCopy' | 'restartFromCopy'
  > & { readonly client: Flushable };
  readonly store: SetBackStore;
  /** Instances live in these. */
  readonly namespaces: readonly [string, ...string[]];
  readonly passing: { readonly namespace: string; renew(): Promise<void> };
  readonly filled: { resize(dice: Dice): Promise<void>; leader(): Promise<number> };
}

export interface Lengths {
  /** Faults that end by their repair. */
  brief(dice: Dice): number;
  long(dice: Dice): number;
}

export type Maker = (victims: Victims, dice: Dice, lengths: Lengths) => Fault;

const HOUR_S = 3_600;
const NODES = 5;
/** Writes that a replacing Redis lacks. */
const LACKS_MS = 1_000;
const BEHIND_MS = 2_000;
const BEHIND_MORE_MS = 8_000;
const FILL_MS = 1_500;

export const MAKERS: Readonly<Record<string, Maker>> = {
  'kill replica': (victims, dice, lengths) => {
    const { n, replica } = aReplica(victims, dice);
    return new Killed(mortal(replica), {
      what: 'replica',
      victim: `replica ${n}`,
      others: 'lead',
      hinders: n,
      lastsMs: lengths.brief(dice),
    });
  },
  'kill API server': (victims, dice, lengths) =>
    componentKilled(victims, {
      component: 'kube-apiserver',
      what: 'API server',
      lastsMs: lengths.brief(dice),
    }),
  'kill etcd': (victims, dice, lengths) =>
    componentKilled(victims, { component: 'etcd', what: 'etcd', lastsMs: lengths.brief(dice) }),
  'kill Redis': ({ redis }, dice, lengths) =>
    new Killed(redis, { what: 'Redis', others: 'wait', lastsMs: lengths.brief(dice) }),
  'stop replica': (victims, dice, lengths) => {
    const { n, replica } = aReplica(victims, dice);
    return new Stopped(
      (signal) => {
        replica.signal(signal);
      },
      {
        what: 'replica',
        victim: `replica ${n}`,
        others: 'lead',
        hinders: n,
        lastsMs: lengths.long(dice),
      },
    );
  },
  'stop Redis': ({ redis }, dice, lengths) =>
    new Stopped(
      (signal) => {
        redis.signal(signal);
      },
      { what: 'Redis', others: 'wait', lastsMs: lengths.long(dice) },
    ),
  'bad link to the API server': (victims, dice, lengths) =>
    badLink(victims, dice, { way: 'toApi', lastsMs: lengths.long(dice) }),
  'bad link to Redis': (victims, dice, lengths) =>
    badLink(victims, dice, { way: 'toRedis', lastsMs: lengths.long(dice) }),
  'clock jump': ({ contenders }, dice, lengths) => {
    const n = dice.below(contenders.length);
    const clock = contenders[n]?.clock;
    if (!clock) throw new Error('no clock');
    return new ClockJump(clock, {
      victim: `the clock of replica ${n}`,
      seconds: HOUR_S,
      lastsMs: lengths.long(dice),
    });
  },
  flush: ({ redis }) => new Flushed(redis.client),
  'delete Pods': ({ controlPlane, namespaces }, dice) =>
    new RemovedByHand(controlPlane, { resource: 'pods', namespace: dice.pick(namespaces), dice }),
  'delete records': ({ controlPlane, namespaces }, dice) =>
    new RemovedByHand(controlPlane, {
      resource: 'sandboxes.sandpool.dev',
      namespace: dice.pick(namespaces),
      dice,
    }),
  'node unready': ({ controlPlane }, dice, lengths) =>
    new UnreadyNode(controlPlane, {
      node: `node-${dice.below(NODES)}`,
      lastsMs: lengths.long(dice),
    }),
  'restart without Redis': (victims, dice, lengths) => {
    const { n, replica } = aReplica(victims, dice);
    return new RestartedWithoutRedis({
      n,
      replica: mortal(replica),
      redis: victims.redis,
      lastsMs: lengths.long(dice),
    });
  },
  'stalled hand-over': (victims, dice) => {
    const { n, replica } = aReplica(victims, dice);
    const again = (): Promise<void> => mortal(replica).restart();
    return new StalledHandOver({
      n,
      replica: { leave: () => replica.stop(), join: again },
      redis: victims.redis,
      dice,
    });
  },
  'Redis failover': ({ redis }, dice, lengths) =>
    new FailedOver(redis, { lacksMs: LACKS_MS, lastsMs: lengths.brief(dice) }),
  'writes refused': (victims, dice, lengths) =>
    writesRefused(victims, dice, { refused: 'right', lastsMs: lengths.long(dice) }),
  'Pods refused': (victims, dice, lengths) =>
    writesRefused(victims, dice, { refused: 'places', lastsMs: lengths.long(dice) }),
  'labels of Pods': ({ controlPlane, namespaces }, dice, lengths) =>
    new LabelsEdited(controlPlane, {
      resource: 'pods',
      namespace: dice.pick(namespaces),
      dice,
      lastsMs: lengths.long(dice),
    }),
  'labels of records': ({ controlPlane, namespaces }, dice, lengths) =>
    new LabelsEdited(controlPlane, {
      resource: 'sandboxes.sandpool.dev',
      namespace: dice.pick(namespaces),
      dice,
      lastsMs: lengths.long(dice),
    }),
  'watch of sandboxpools behind': (victims, dice, lengths) =>
    watchBehind(victims, dice, { plural: 'sandboxpools', lastsMs: lengths.long(dice) }),
  'watch of sandboxes behind': (victims, dice, lengths) =>
    watchBehind(victims, dice, { plural: 'sandboxes', lastsMs: lengths.long(dice) }),
  'kill in a fill': ({ contenders, filled }, dice, lengths) =>
    new KilledInFill({
      resize: () => filled.resize(dice),
      leader: () => filled.leader(),
      replicas: contenders.map(({ replica }) => mortal(replica)),
      afterMs: dice.below(FILL_MS),
      lastsMs: lengths.brief(dice),
    }),
  'namespace deleted': ({ controlPlane, passing: { namespace, renew } }) =>
    new NamespaceDeleted(controlPlane, { namespace, renew, lastsMs: 0 }),
  'etcd restored': ({ store }, dice, lengths) => new SetBack(store, lengths.long(dice)),
};

const aReplica = (
  { contenders }: Victims,
  dice: Dice,
): { readonly n: number; readonly replica: Attacked } => {
  const n = dice.below(contenders.length);
  const replica = contenders[n]?.replica;
  if (!replica) throw new Error('no replica');
  return { n, replica };
};

/** Another fault may have started it already. */
const mortal = (replica: Attacked): Mortal => ({
  kill: () => replica.kill(),
  restart: () =>
    insist(async () => {
      if (!replica.isRunning) await replica.start();
    }),
});

interface Component {
  readonly component: 'kube-apiserver' | 'etcd';
  readonly what: string;
  readonly lastsMs: number;
}

const componentKilled = (
  { controlPlane }: Victims,
  { component, what, lastsMs }: Component,
): Fault =>
  new Killed(
    {
      kill: () => controlPlane.kill(component),
      restart: () => insist(() => controlPlane.begin(component)),
    },
    { what, others: 'wait', lastsMs },
  );

const writesRefused = (
  { controlPlane, namespaces }: Victims,
  dice: Dice,
  refusal: { readonly refused: Refused; readonly lastsMs: number },
): Fault => new WritesRefused(controlPlane, { namespace: dice.pick(namespaces), ...refusal });

const badLink = (
  { contenders }: Victims,
  dice: Dice,
  { way, lastsMs }: { readonly way: 'toApi' | 'toRedis'; readonly lastsMs: number },
): Fault => {
  const n = dice.below(contenders.length);
  const proxy = contenders[n]?.[way];
  if (!proxy) throw new Error('no link');
  const trouble = dice.pick(['slow', 'cut', 'answers cut', 'half-open'] as const);
  return new BadLink(proxy, {
    trouble,
    victim: `replica ${n} to ${way === 'toApi' ? 'the API server' : 'Redis'}`,
    hinders: n,
    lastsMs,
  });
};

/** Only the last replica's proxy sees what passes. */
const watchBehind = (
  { contenders }: Victims,
  dice: Dice,
  { plural, lastsMs }: { readonly plural: string; readonly lastsMs: number },
): Fault => {
  const n = contenders.length - 1;
  const proxy = contenders[n]?.toApi;
  if (!proxy) throw new Error('no link');
  return new WatchBehind(proxy, {
    n,
    plural,
    behindMs: BEHIND_MS + dice.below(BEHIND_MORE_MS),
    lastsMs,
  });
};
