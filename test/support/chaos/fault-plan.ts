import type { Dice } from '../hostile-values.ts';
import { idOfPodName } from '../../../src/model/identifiers.ts';
import type { Arena } from './arena.ts';
import { BadLink } from './faults/bad-link.ts';
import { ClockJump } from './faults/clock-jump.ts';
import type { Fault } from './faults/fault.ts';
import { Flushed } from './faults/flushed.ts';
import { Killed } from './faults/killed.ts';
import { RemovedByHand } from './faults/removed-by-hand.ts';
import { Stopped } from './faults/stopped.ts';
import { UnreadyNode } from './faults/unready-node.ts';

const HOUR_S = 3_600;
/** Pods or records that one hand deletes. */
const MOST_REMOVED = 3;

type Maker = (arena: Arena, dice: Dice, namespaces: readonly string[]) => Fault | Promise<Fault>;

const briefly = (dice: Dice): number => 300 + dice.below(2_700);
const long = (dice: Dice): number => 2_000 + dice.below(13_000);

const MAKERS: Readonly<Record<string, Maker>> = {
  'kill replica': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    const replica = contenders[n]?.replica;
    return new Killed({ kill: async () => replica?.kill(), restart: async () => replica?.start() }, { what: 'replica', victim: `replica ${n}`, others: 'lead', lastsMs: briefly(dice) });
  },
  'kill API server': ({ controlPlane }, dice) =>
    new Killed({ kill: () => controlPlane.kill('kube-apiserver'), restart: () => controlPlane.begin('kube-apiserver') }, { what: 'API server', others: 'wait', lastsMs: briefly(dice) }),
  'kill etcd': ({ controlPlane }, dice) =>
    new Killed({ kill: () => controlPlane.kill('etcd'), restart: () => controlPlane.begin('etcd') }, { what: 'etcd', others: 'wait', lastsMs: briefly(dice) }),
  'kill Redis': ({ redis }, dice) => new Killed(redis, { what: 'Redis', others: 'wait', lastsMs: briefly(dice) }),
  'stop replica': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    return new Stopped((signal) => contenders[n]?.replica.signal(signal), { what: 'replica', victim: `replica ${n}`, others: 'lead', lastsMs: long(dice) });
  },
  'stop Redis': ({ redis }, dice) => new Stopped((signal) => { redis.signal(signal); }, { what: 'Redis', others: 'wait', lastsMs: long(dice) }),
  'bad link to the API server': (arena, dice) => badLink(arena, dice, 'toApi'),
  'bad link to Redis': (arena, dice) => badLink(arena, dice, 'toRedis'),
  'clock jump': ({ contenders }, dice) => {
    const n = dice.below(contenders.length);
    const clock = contenders[n]?.clock;
    if (!clock) throw new Error('no clock');
    return new ClockJump(clock, { victim: `replica ${n}`, seconds: HOUR_S, lastsMs: long(dice) });
  },
  'flush': ({ redis }) => new Flushed(redis.client),
  'delete Pods': (arena, dice, namespaces) => removal(arena, dice, { resource: 'pods', namespace: dice.pick(namespaces as [string, ...string[]]) }),
  'delete records': (arena, dice, namespaces) => removal(arena, dice, { resource: 'sandboxes.sandpool.dev', namespace: dice.pick(namespaces as [string, ...string[]]) }),
  'node unready': ({ controlPlane }, dice) => new UnreadyNode(controlPlane, { node: `node-${dice.below(5)}`, lastsMs: long(dice) }),
};

export const FAULT_KINDS: readonly string[] = Object.keys(MAKERS);

/** Every kind once, in an order of chance, before any comes again. */
export class FaultPlan {
  readonly #arena: Arena;
  readonly #dice: Dice;
  readonly #kinds: readonly string[];
  readonly #namespaces: readonly string[];
  #left: string[] = [];

  constructor(arena: Arena, options: { readonly dice: Dice; readonly kinds?: readonly string[]; readonly namespaces: readonly string[] }) {
    [this.#arena, this.#dice, this.#namespaces, this.#kinds] = [arena, options.dice, options.namespaces, options.kinds ?? FAULT_KINDS];
  }

  async next(): Promise<Fault> {
    if (this.#left.length === 0) this.#left = [...this.#kinds];
    const [kind = ''] = this.#left.splice(this.#dice.below(this.#left.length), 1);
    const make = MAKERS[kind];
    if (!make) throw new Error(`there is no fault "${kind}"; there are: ${FAULT_KINDS.join(', ')}`);
    return await make(this.#arena, this.#dice, this.#namespaces);
  }
}

const badLink = ({ contenders }: Arena, dice: Dice, which: 'toApi' | 'toRedis'): Fault => {
  const n = dice.below(contenders.length);
  const proxy = contenders[n]?.[which];
  if (!proxy) throw new Error('no link');
  const trouble = dice.pick(['slow', 'cut', 'answers cut', 'half-open'] as const);
  return new BadLink(proxy, { trouble, victim: `replica ${n} to ${which === 'toApi' ? 'the API server' : 'Redis'}`, lastsMs: long(dice) });
};

const removal = async ({ controlPlane }: Arena, dice: Dice, what: { readonly resource: 'pods' | 'sandboxes.sandpool.dev'; readonly namespace: string }): Promise<Fault> => {
  const there = (await controlPlane.kubectl('get', what.resource, '-n', what.namespace, '-o', 'jsonpath={.items[*].metadata.name}')).split(' ').flatMap((name) => idOfPodName(name) ?? []);
  const ids: string[] = [];
  for (let left = 1 + dice.below(MOST_REMOVED); left > 0 && there.length > 0; left -= 1) ids.push(...there.splice(dice.below(there.length), 1));
  return new RemovedByHand(controlPlane, { ...what, ids });
};
