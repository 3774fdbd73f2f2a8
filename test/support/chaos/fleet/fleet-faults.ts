import { Dice } from '../../builders/hostile-values.ts';
import type { FaultProxy } from '../../harness/fault-proxy.ts';
import { kindsAmong } from '../fault-plan.ts';
import { BadLink, type Breakable, type LinkTrouble } from '../faults/bad-link.ts';
import { ClockJump } from '../faults/clock-jump.ts';
import type { Fault } from '../faults/fault.ts';
import { Killed } from '../faults/killed.ts';
import { Stopped } from '../faults/stopped.ts';
import type { Strike } from '../strike.ts';
import type { ManagerReplica } from './fleet-arena.ts';
import type { FleetWorker } from './workers.ts';

const HOUR_S = 3_600;
/** Leadership is not checked here. */
const OTHERS = { others: 'wait', hinders: 0 } as const;
/** Share of strikes that begin during another fault. */
const AT_ONCE = 0.3;
const TROUBLES: readonly [LinkTrouble, ...LinkTrouble[]] = [
  'cut',
  'slow',
  'half-open',
  'one way out',
  'one way in',
  'answers cut',
];

class SeveralWays implements Breakable {
  readonly #ways: readonly FaultProxy[];

  constructor(ways: readonly FaultProxy[]) {
    this.#ways = ways;
  }

  set delayMs(delayMs: number) {
    for (const way of this.#ways) way.delayMs = delayMs;
  }

  set state(state: Breakable['state']) {
    for (const way of this.#ways) way.state = state;
  }

  cut(): void {
    for (const way of this.#ways) way.cut();
  }
}

export interface FleetVictims {
  readonly workers: readonly Pick<
    FleetWorker,
    'clusterId' | 'ways' | 'kill' | 'end' | 'restart' | 'signal'
  >[];
  readonly managers: readonly (Pick<ManagerReplica, 'clock'> & {
    readonly replica: Pick<
      ManagerReplica['replica'],
      'name' | 'kill' | 'start' | 'stop' | 'signal'
    >;
  })[];
}

type Maker = (victims: FleetVictims, dice: Dice, lastsMs: number) => Fault;

const aLink =
  (trouble: LinkTrouble): Maker =>
  (victims, dice, lastsMs) => {
    const { clusterId, ways } = pick(victims.workers, dice);
    const one = dice.below(2 * ways.length);
    const chosen = ways.filter((_, n) => one >= ways.length || n === one);
    return new BadLink(new SeveralWays(chosen), {
      ...{ trouble, lastsMs, victim: clusterId, hinders: 0 },
    });
  };

// no name has a comma: commas tell them apart
const MAKERS: Readonly<Record<string, Maker>> = {
  ...Object.fromEntries(TROUBLES.map((trouble) => [`link ${trouble}`, aLink(trouble)])),
  'kill worker': (victims, dice, lastsMs) => {
    const worker = pick(victims.workers, dice);
    return new Killed(worker, { ...OTHERS, what: 'worker', victim: worker.clusterId, lastsMs });
  },
  'stop worker': (victims, dice, lastsMs) => {
    const worker = pick(victims.workers, dice);
    return new Stopped((name) => worker.signal(name), {
      ...{ ...OTHERS, what: 'worker', victim: worker.clusterId, lastsMs },
    });
  },
  'kill manager': (victims, dice, lastsMs) => {
    const { replica } = pick(victims.managers, dice);
    const mortal = { kill: () => replica.kill(), restart: () => replica.start() };
    return new Killed(mortal, { ...OTHERS, what: 'manager', victim: replica.name, lastsMs });
  },
  'kill worker by SIGTERM': (victims, dice, lastsMs) => {
    const worker = pick(victims.workers, dice);
    const mortal = { kill: () => worker.end(), restart: () => worker.restart() };
    return new Killed(mortal, {
      ...{ ...OTHERS, what: 'worker by SIGTERM', victim: worker.clusterId, lastsMs },
    });
  },
  'kill manager by SIGTERM': (victims, dice, lastsMs) => {
    const { replica } = pick(victims.managers, dice);
    const mortal = {
      kill: async () => void (await replica.stop()),
      restart: () => replica.start(),
    };
    return new Killed(mortal, {
      ...{ ...OTHERS, what: 'manager by SIGTERM', victim: replica.name, lastsMs },
    });
  },
  'stop manager': (victims, dice, lastsMs) => {
    const { replica } = pick(victims.managers, dice);
    return new Stopped((name) => replica.signal(name), {
      ...{ ...OTHERS, what: 'manager', victim: replica.name, lastsMs },
    });
  },
  'clock jump': (victims, dice, lastsMs) => {
    const { replica, clock } = pick(victims.managers, dice);
    const seconds = dice.chance(0.5) ? HOUR_S : -HOUR_S;
    return new ClockJump(clock, { victim: replica.name, seconds, lastsMs });
  },
};

export const FLEET_FAULTS: readonly string[] = Object.keys(MAKERS);

interface FleetFaultPlanOptions {
  readonly seed: number;
  readonly longestMs: number;
  /** Of FLEET_FAULTS; all by default. */
  readonly kinds?: readonly string[];
}

/** Every kind once in random order before any repeats; sometimes two at once. */
export class FleetFaultPlan {
  readonly #victims: FleetVictims;
  readonly #dice: Dice;
  readonly #longestMs: number;
  readonly #kinds: readonly string[];
  #left: string[] = [];

  constructor(
    victims: FleetVictims,
    { seed, longestMs, kinds = FLEET_FAULTS }: FleetFaultPlanOptions,
  ) {
    [this.#victims, this.#dice, this.#longestMs, this.#kinds] = [
      victims,
      new Dice(seed),
      longestMs,
      kindsAmong(FLEET_FAULTS, kinds),
    ];
  }

  next(most: number): Strike {
    const first = this.#draw();
    const blows = [{ fault: first, afterMs: this.#dice.below(300) }];
    if (most < 2 || !this.#dice.chance(AT_ONCE)) return blows;
    const second = this.#draw();
    // one process or link has one fault at a time
    if (second.victim !== first.victim)
      blows.push({ fault: second, afterMs: this.#dice.below(1_000) });
    return blows;
  }

  #draw(): Fault {
    if (this.#left.length === 0) this.#left = [...this.#kinds];
    const [kind = ''] = this.#left.splice(this.#dice.below(this.#left.length), 1);
    const lastsMs = 200 + this.#dice.below(this.#longestMs - 200);
    return MAKERS[kind]!(this.#victims, this.#dice, lastsMs);
  }
}

const pick = <T>(values: readonly T[], dice: Dice): T => values[dice.below(values.length)]!;
