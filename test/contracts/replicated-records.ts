import { expect } from 'chai';
import fc from 'fast-check';
import { comesRight } from '../properties/after-faults.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';
import { runs } from '../support/harness/runs.ts';
import { turns } from '../support/harness/turns.ts';

/** What one link of a manager reports. */
export interface ReplicaLink {
  /** `isWhole`: of the complete list that a link begins with. */
  report(numbers: readonly number[], terms: { readonly isWhole: boolean }): Promise<void>;
  gone(numbers: readonly number[]): Promise<void>;
  caughtUp(): Promise<void>;
  left(): Promise<void>;
  end(): void;
}

/** A worker that keeps copies of one kind of record, of which there are ten, by number. */
export interface ReplicaWorld {
  leadsTo(address: string, manager: string): void;
  begin(manager: string): ReplicaLink;
  cutOff(): void;
  stop(): void;
  /** Stops the daemon, and starts another one on what the store has. */
  restart(): Promise<void>;
  /** The records of which the store has a copy that is a manager's, in order. */
  kept(): readonly number[];
  /** How many records the store has, whosever they are. */
  stored(): number;
  /** Whether the store refuses every write from now on. */
  breakStore(isBroken: boolean): void;
}

type Start = (clock: TestClock) => Promise<ReplicaWorld>;

/** Once the store works: what it refused is asked for again within 5 s. */
const passes = async (clock: TestClock, seconds = 5): Promise<void> => {
  for (let passed = 0; passed < seconds; passed += 5) {
    clock.advance(5_000);
    await turns(20);
  }
};

/** Moves the clock on until the work is done: a store may let who looks a key up wait. */
const meanwhile = async (clock: TestClock, work: Promise<void>): Promise<void> => {
  let isDone = false;
  void work.finally(() => (isDone = true));
  for (await turns(); !isDone; await turns()) clock.advance(250);
  await work;
};

/** What every kind of replicated record holds. A cluster has one manager's address here. */
export const replicatedRecordsContract = (kind: string, start: Start): Mocha.Suite =>
  describe(`copies of ${kind}`, () => {
    let clock: TestClock;
    let world: ReplicaWorld;

    beforeEach(async () => {
      clock = new TestClock();
      world = await start(clock);
    });
    afterEach(() => world.stop());

    /** A link on which all was reported. */
    const linked = async (numbers: readonly number[], manager = 'hub'): Promise<ReplicaLink> => {
      world.leadsTo('ws://a', manager);
      const link = world.begin(manager);
      await link.report(numbers, { isWhole: true });
      await link.caughtUp();
      return link;
    };

    it('are stored once they are reported', async () => {
      const link = await linked([0, 1]);
      await link.report([2], { isWhole: false });
      expect(world.kept()).to.deep.equal([0, 1, 2]);
    });

    it('stay while no manager is linked, even over a restart', async () => {
      (await linked([0, 1])).end();
      await world.restart();
      await passes(clock, 300);
      expect(world.kept()).to.deep.equal([0, 1]);
    });

    it('that a complete list lacks are deleted only if they were reported before it', async () => {
      (await linked([0, 1])).end();
      await world.restart();
      const link = world.begin('hub');
      await link.report([1], { isWhole: true });
      expect(world.kept()).to.deep.equal([0, 1]);
      await link.caughtUp();
      expect(world.kept()).to.deep.equal([1]);
    });

    it('that another link reported in the meantime stay, even if a complete list lacks them', async () => {
      const slow = world.begin('hub');
      const other = await linked([0]);
      await other.report([1], { isWhole: false });
      await slow.report([0], { isWhole: true }); // read before 1 was made
      await slow.caughtUp();
      expect(world.kept()).to.deep.equal([0, 1]);
    });

    it('that were reported as deleted are not restored by a late report', async () => {
      const [one, other] = [await linked([0, 1]), await linked([0, 1])];
      await one.gone([0]);
      await other.report([0], { isWhole: false });
      expect(world.kept()).to.deep.equal([1]);
    });

    it('that the store failed to write or delete follow once it works', async () => {
      const link = await linked([0]);
      world.breakStore(true);
      await link.report([1], { isWhole: false });
      await link.gone([0]);
      await passes(clock, 60);
      expect(world.kept()).to.deep.equal([0]);
      world.breakStore(false);
      await passes(clock);
      expect(world.kept()).to.deep.equal([1]);
    });

    it('that were reported and deleted while the store was unavailable are never created', async () => {
      const link = await linked([]);
      world.breakStore(true);
      await link.report([0], { isWhole: false });
      await link.gone([0]);
      world.breakStore(false);
      await passes(clock, 60);
      expect(world.kept()).to.deep.equal([]);
    });

    it('of a manager without an address expire once its last link ends', async () => {
      const former = await linked([0]);
      world.leadsTo('ws://a', 'another');
      await turns();
      expect(world.kept()).to.deep.equal([0]);
      former.end();
      await eventually(() => world.kept().length === 0, 'they lapse');
    });

    it('expire if the managers are disconnected, once the store can delete them', async () => {
      (await linked([0, 1])).end();
      world.breakStore(true);
      world.cutOff();
      await passes(clock, 60);
      world.breakStore(false);
      await passes(clock);
      expect(world.kept()).to.deep.equal([]);
      await linked([0, 1]);
      expect(world.kept()).to.deep.equal([0, 1]);
    });

    it('that expired and were reported again are deleted for good on the next report', async () => {
      (await linked([0])).end();
      world.cutOff();
      await turns();
      const link = await linked([0]);
      await link.gone([0]);
      expect([world.kept(), world.stored()]).to.deep.equal([[], 0]);
    });

    it('expire durably if the manager no longer knows the cluster', async () => {
      const link = await linked([0]);
      world.breakStore(true);
      expect(await rejection(link.left())).to.be.instanceOf(Error);
      world.breakStore(false);
      await link.left();
      expect(world.kept()).to.deep.equal([]);
    });

    it("match the manager's records after any series of faults", () =>
      comesRight(steps, () => PlayedManager.start(start), { numRuns: runs(100) }));
  });

const which = fc.nat(9);
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ does: fc.constantFrom('make', 'hear'), which }) },
    { weight: 3, arbitrary: fc.record({ does: fc.constantFrom('end', 'link', 'cut'), which }) },
    { weight: 2, arbitrary: fc.record({ does: fc.constantFrom('break', 'mend', 'wait'), which }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constantFrom('restart', 'cut off'), which }) },
  ),
  { minLength: 5, maxLength: 40 },
);

interface OpenLink {
  readonly link: ReplicaLink;
  /** Reports under way, each in its turn. */
  readonly late: (() => Promise<void>)[];
}

/** A manager of two replicas, each with a link of its own, whose reports come late. */
class PlayedManager {
  readonly #clock: TestClock;
  readonly #world: ReplicaWorld;
  /** False: it is gone for good. */
  readonly #records = new Map<number, boolean>();
  readonly #links: (OpenLink | undefined)[] = [undefined, undefined];

  private constructor(clock: TestClock, world: ReplicaWorld) {
    this.#clock = clock;
    this.#world = world;
  }

  static async start(start: Start): Promise<PlayedManager> {
    const clock = new TestClock();
    const world = await start(clock);
    world.leadsTo('ws://a', 'hub');
    return new PlayedManager(clock, world);
  }

  async take({ does, which }: { readonly does: string; readonly which: number }): Promise<void> {
    const at = which % this.#links.length;
    if (does === 'make' && !this.#records.has(which)) {
      this.#records.set(which, true);
      this.#say((link) => link.report([which], { isWhole: false }));
    } else if (does === 'end' && this.#records.get(which)) {
      this.#records.set(which, false);
      this.#say((link) => link.gone([which]));
    } else if (does === 'hear') await this.#hear(this.#links[at]?.late.shift());
    else if (does === 'link') this.#open(at);
    else if (does === 'cut') this.#cut(at);
    else if (does === 'break' || does === 'mend') this.#world.breakStore(does === 'break');
    else if (does === 'wait') await passes(this.#clock);
    else if (does === 'restart' || does === 'cut off') {
      for (const each of this.#links.keys()) this.#cut(each);
      if (does === 'restart') await this.#world.restart();
      else this.#world.cutOff();
      this.#world.leadsTo('ws://a', 'hub');
    }
  }

  /** Both links stand, and nothing is under way; then the last fault ends. */
  async settle(): Promise<void> {
    for (const at of this.#links.keys()) this.#open(at);
    for (const open of this.#links) for (const report of open?.late ?? []) await this.#hear(report);
    this.#world.breakStore(false);
    await passes(this.#clock, 10);
    const standing = [...this.#records].filter(([, stands]) => stands).map(([number]) => number);
    expect(this.#world.kept()).to.deep.equal(standing.toSorted((a, b) => a - b));
  }

  stop(): void {
    this.#world.stop();
  }

  async #hear(report: (() => Promise<void>) | undefined): Promise<void> {
    if (report) await meanwhile(this.#clock, report());
  }

  #say(report: (link: ReplicaLink) => Promise<void>): void {
    for (const open of this.#links) open?.late.push(() => report(open.link));
  }

  #open(at: number): void {
    if (this.#links[at]) return;
    const link = this.#world.begin('hub');
    const listed = [...this.#records].filter(([, stands]) => stands).map(([number]) => number);
    const late = listed.map((each) => () => link.report([each], { isWhole: true }));
    this.#links[at] = { link, late: [...late, () => link.caughtUp()] };
  }

  #cut(at: number): void {
    this.#links[at]?.link.end();
    this.#links[at] = undefined;
  }
}
