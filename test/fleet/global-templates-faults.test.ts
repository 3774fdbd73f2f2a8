import { expect } from 'chai';
import fc from 'fast-check';
import type { Clock } from '../../src/contracts/clock.ts';
import { isSameData } from '../../src/lib/plain-data.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { Refusal } from '../../src/model/refusals.ts';
import type { TemplateRecord } from '../../src/model/templates/template.ts';
import { comesRight } from '../properties/after-faults.ts';
import { eventually } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';
import { aDocument, ClusterTemplates } from './a-templated-cluster.ts';

const FULL = new Error('the disk is full');
const NAMES = ['a', 'b'] as const;
const name = fc.constantFrom(...NAMES);
const steps = fc.array(
  fc.oneof(
    fc.record({ does: fc.constantFrom('make', 'change', 'delete', 'flip'), name }),
    fc.record({
      does: fc.constantFrom('make', 'delete', 'use', 'leave', 'break'),
      name,
      at: fc.constant('west'),
    }),
    fc.record({ does: fc.constantFrom('cut', 'kill', 'heal'), name }),
  ),
  { minLength: 6, maxLength: 24 },
);
type Step = { readonly does: string; readonly name: string; readonly at?: string };

/** A manager and a worker whose templates are in stores that outlive them. */
class PlayedFleet {
  readonly #hub: ClusterTemplates;
  readonly #west: ClusterTemplates;
  readonly #fleet: FleetUnderTest;
  #worker: TestWorker | undefined;
  #folder: string | undefined;
  #made = 0;

  private constructor(hub: ClusterTemplates, west: ClusterTemplates, fleet: FleetUnderTest) {
    this.#hub = hub;
    this.#west = west;
    this.#fleet = fleet;
  }

  static async start(): Promise<PlayedFleet> {
    const hub = await ClusterTemplates.start(systemClock(), 0);
    const west = await ClusterTemplates.start(hastyClock());
    return new PlayedFleet(hub, west, await FleetUnderTest.start({ templates: hub.globals }));
  }

  async take(step: Step): Promise<void> {
    try {
      await this.#take(step);
    } catch (error) {
      if (!(error instanceof Refusal || error === FULL)) throw error;
    }
  }

  async #take({ does, name: of, at }: Step): Promise<void> {
    const manager = this.#hub.operations(() => this.#fleet.links);
    const text = String((this.#made += 1));
    if (does === 'cut' || does === 'kill') {
      this.#worker?.links.stop();
      this.#worker = undefined;
      if (does === 'kill') await this.#west.restart();
    } else if (does === 'heal') await this.#heal();
    else if (does === 'use') this.#west.usedBy(of);
    else if (does === 'leave') this.#west.usedBy();
    else if (does === 'break') await this.#breaks(of);
    else if (does === 'change') await manager.update(of, { description: text });
    else if (does === 'flip')
      await manager.update(of, {
        syncSource: this.#hub.get(of)?.globalId === undefined ? 'global' : '',
      });
    else {
      const operations = at === undefined ? manager : this.#west.operations();
      if (does === 'delete') await operations.delete(of);
      else await operations.create(aDocument(of, text), at ? {} : { syncSource: 'global' });
    }
  }

  /** The next write at the worker fails, or what is there is edited by hand. */
  async #breaks(of: string): Promise<void> {
    const record = this.#west.get(of);
    if (record?.managedBy) {
      await this.#west.store.update({ ...record, document: aDocument(of, 'by hand') });
      return;
    }
    const { store } = this.#west;
    const { create } = store;
    store.create = () => {
      store.create = create;
      return Promise.reject(FULL);
    };
  }

  async #heal(): Promise<void> {
    if (this.#worker) return;
    const serve = { serve: (connection: { destroy: () => unknown }) => void connection.destroy() };
    const terms = { ...serve, clusterId: 'west', templates: this.#west.copies };
    this.#worker =
      this.#folder === undefined
        ? await this.#fleet.join(terms)
        : this.#fleet.worker({ ...terms, folder: this.#folder });
    this.#folder = this.#worker.folder;
  }

  /** After the last fault: what is global is there alike, and of what is not nothing is left. */
  async settle(): Promise<void> {
    this.#west.usedBy();
    for (const of of NAMES) await this.take({ does: 'delete', name: of, at: 'west' });
    await this.#heal();
    const wanted = (): readonly object[] =>
      [...this.#hub.store.records.values()].filter(({ globalId }) => globalId).map(shownOf);
    await eventually(() => {
      const kept = [...this.#west.store.records.values()].map(shownOf);
      const all = wanted();
      return (
        kept.length === all.length &&
        all.every((each) => kept.some((other) => isSameData(each, other)))
      );
    }, 'both agree');
    for (const record of this.#west.store.records.values())
      expect(record.managedBy, record.name).to.match(/./);
  }

  async stop(): Promise<void> {
    this.#west.copies.stop();
    await this.#fleet.stop();
  }
}

const shownOf = ({ managedBy: _by, revision: _revision, ...shown }: TemplateRecord): object =>
  shown;

/** A hundred times as fast: what failed is tried again soon. */
const hastyClock = (): Clock => {
  const clock = systemClock();
  const began = clock.now();
  return {
    now: () => began + (clock.now() - began) * 100,
    at: (time, ring) => clock.at(began + (time - began) / 100, ring),
  };
};

describe('global templates through any fault', function () {
  it('match on a worker once it is linked again', () =>
    comesRight(steps, () => PlayedFleet.start(), { numRuns: runs(8) }));
});
