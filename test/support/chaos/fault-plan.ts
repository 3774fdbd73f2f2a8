import { Dice } from '../hostile-values.ts';
import type { Arena, Contender } from './arena.ts';
import { BadLink } from './faults/bad-link.ts';
import { ClockJump } from './faults/clock-jump.ts';
import type { Fault } from './faults/fault.ts';
import { type Flushable, Flushed } from './faults/flushed.ts';
import { insist } from './faults/insist.ts';
import { Killed } from './faults/killed.ts';
import { RemovedByHand } from './faults/removed-by-hand.ts';
import { Stopped } from './faults/stopped.ts';
import { UnreadyNode } from './faults/unready-node.ts';
import type { Blow, Strike } from './strike.ts';

/** What faults befall. */
export interface Victims {
  readonly contenders: readonly (Pick<Contender, 'toApi' | 'toRedis' | 'clock'> & { readonly replica: Pick<Contender['replica'], 'kill' | 'start' | 'signal'> })[];
  readonly controlPlane: Pick<Arena['controlPlane'], 'kubectl' | 'kubectlAs' | 'kill' | 'begin'>;
  readonly redis: Pick<Arena['redis'], 'kill' | 'restart' | 'signal'> & { readonly client: Flushable };
  /** Where instances live. */
  readonly namespaces: readonly [string, ...string[]];
}

const HOUR_S = 3_600;
const NODES = 5;
/** Between two strikes. */
const CALM_MS = 1_000;
const CALM_MORE_MS = 3_000;
/** From the first fault of a strike to its last. */
const SPREAD_MS = 1_500;
/** Of ten strikes so many have one fault alone, two, three. */
const AT_ONCE = [1, 1, 1, 1, 1, 2, 2, 2, 3, 3] as const;

type Maker = (victims: Victims, dice: Dice) => Fault;

const MAKERS: Readonly<Record<string, Maker>> = {
  'kill replica': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    const replica = contenders[n]?.replica;
    return new Killed({ kill: async () => replica?.kill(), restart: () => insist(async () => replica?.start()) }, { what: 'replica', victim: `replica ${n}`, others: 'lead', hinders: n, lastsMs: briefly(dice) });
  },
  'kill API server': (victims, dice) => componentKilled(victims, dice, { component: 'kube-apiserver', what: 'API server' }),
  'kill etcd': (victims, dice) => componentKilled(victims, dice, { component: 'etcd', what: 'etcd' }),
  'kill Redis': ({ redis }, dice) => new Killed(redis, { what: 'Redis', others: 'wait', lastsMs: briefly(dice) }),
  'stop replica': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    return new Stopped((signal) => contenders[n]?.replica.signal(signal), { what: 'replica', victim: `replica ${n}`, others: 'lead', hinders: n, lastsMs: long(dice) });
  },
  'stop Redis': ({ redis }, dice) => new Stopped((signal) => { redis.signal(signal); }, { what: 'Redis', others: 'wait', lastsMs: long(dice) }),
  'bad link to the API server': (victims, dice) => badLink(victims, dice, 'toApi'),
  'bad link to Redis': (victims, dice) => badLink(victims, dice, 'toRedis'),
  'clock jump': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    const clock = contenders[n]?.clock;
    if (!clock) throw new Error('no clock');
    return new ClockJump(clock, { victim: `the clock of replica ${n}`, seconds: HOUR_S, lastsMs: long(dice) });
  },
  'flush': ({ redis }) => new Flushed(redis.client),
  'delete Pods': ({ controlPlane, namespaces }, dice) => new RemovedByHand(controlPlane, { resource: 'pods', namespace: dice.pick(namespaces), dice }),
  'delete records': ({ controlPlane, namespaces }, dice) => new RemovedByHand(controlPlane, { resource: 'sandboxes.sandpool.dev', namespace: dice.pick(namespaces), dice }),
  'node unready': ({ controlPlane }, dice) => new UnreadyNode(controlPlane, { node: `node-${dice.below(NODES)}`, lastsMs: long(dice) }),
};

export const FAULT_KINDS: readonly string[] = Object.keys(MAKERS);

export interface FaultPlanOptions {
  /** The same seed has the same faults befall the same victims, after the same calm. */
  readonly seed: number;
  /** Of FAULT_KINDS; all unless told. */
  readonly kinds?: readonly string[];
}

/** Every kind once, in an order of chance, before any comes again; now and then two or three of different kinds and victims at once. */
export class FaultPlan {
  readonly #victims: Victims;
  readonly #dice: Dice;
  readonly #kinds: readonly string[];
  #left: string[] = [];

  constructor(victims: Victims, { seed, kinds = FAULT_KINDS }: FaultPlanOptions) {
    const unknown = kinds.find((kind) => MAKERS[kind] === undefined);
    if (unknown !== undefined) throw new Error(`there is no fault "${unknown}"; there are: ${FAULT_KINDS.join(', ')}`);
    [this.#victims, this.#dice, this.#kinds] = [victims, new Dice(seed), kinds];
  }

  /** At most so many faults. */
  next(most: number): Strike {
    const count = Math.min(this.#dice.pick(AT_ONCE), most);
    const calmMs = CALM_MS + this.#dice.below(CALM_MORE_MS);
    const blows: Blow[] = [];
    while (blows.length < count) {
      const { kind, fault } = this.#draw();
      if (blows.some(({ fault: other }) => other.kind === fault.kind || other.victim === fault.victim)) {
        this.#left.push(kind);
        break;
      }
      blows.push({ fault, afterMs: calmMs + (blows.length === 0 ? 0 : this.#dice.below(SPREAD_MS)) });
    }
    return blows;
  }

  #draw(): { readonly kind: string; readonly fault: Fault } {
    if (this.#left.length === 0) this.#left = [...this.#kinds];
    const [kind = ''] = this.#left.splice(this.#dice.below(this.#left.length), 1);
    const make = MAKERS[kind];
    if (!make) throw new Error('there is no kind of fault to choose from');
    // What chance does later, once the fault is under way, must not change what comes after it.
    return { kind, fault: make(this.#victims, new Dice(this.#dice.below(2 ** 32))) };
  }
}

const briefly = (dice: Dice): number => 300 + dice.below(2_700);
const long = (dice: Dice): number => 2_000 + dice.below(13_000);

const componentKilled = ({ controlPlane }: Victims, dice: Dice, { component, what }: { readonly component: 'kube-apiserver' | 'etcd'; readonly what: string }): Fault =>
  new Killed({ kill: () => controlPlane.kill(component), restart: () => insist(() => controlPlane.begin(component)) }, { what, others: 'wait', lastsMs: briefly(dice) });

const badLink = ({ contenders }: Victims, dice: Dice, which: 'toApi' | 'toRedis'): Fault => {
  const n = dice.below(contenders.length);
  const proxy = contenders[n]?.[which];
  if (!proxy) throw new Error('no link');
  const trouble = dice.pick(['slow', 'cut', 'answers cut', 'half-open'] as const);
  return new BadLink(proxy, { trouble, victim: `replica ${n} to ${which === 'toApi' ? 'the API server' : 'Redis'}`, hinders: n, lastsMs: long(dice) });
};
