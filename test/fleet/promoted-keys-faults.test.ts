import { expect } from 'chai';
import fc from 'fast-check';
import type { Duplex } from 'node:stream';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { comesRight } from '../properties/after-faults.ts';
import { eventually } from '../support/harness/eventually.ts';
import { runs } from '../support/harness/runs.ts';
import { FleetUnderTest, type TestWorker } from './a-fleet.ts';
import { ClusterKeys } from './a-promoting-fleet.ts';

const WORKERS = ['east', 'west'] as const;

interface PlayedWorker {
  readonly clusterId: string;
  readonly keys: ClusterKeys;
  running: TestWorker | undefined;
  folder: string | undefined;
  /** A connection came to it, so that the manager's link is the one that stands. */
  isServed: boolean;
}

type Step =
  | { readonly does: 'promote' }
  | { readonly does: 'restart the manager' }
  | { readonly does: 'revoke'; readonly which: number }
  | { readonly does: 'cut' | 'kill' | 'heal'; readonly which: number };

const steps = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.record({ does: fc.constant('promote' as const) }) },
    { weight: 1, arbitrary: fc.record({ does: fc.constant('restart the manager' as const) }) },
    {
      weight: 2,
      arbitrary: fc.record({ does: fc.constant('revoke' as const), which: fc.nat(9) }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        does: fc.constantFrom('cut' as const, 'kill' as const, 'heal' as const),
        which: fc.nat(9),
      }),
    },
  ),
  { minLength: 4, maxLength: 16 },
);

/** A manager and two workers with keys in stores that outlive them. */
class PlayedFleet {
  readonly #hub: ClusterKeys;
  readonly #fleet: FleetUnderTest;
  readonly #workers: readonly PlayedWorker[];
  readonly #standing = new Map<string, string>();
  readonly #revoked = new Set<string>();

  private constructor(hub: ClusterKeys, fleet: FleetUnderTest, workers: readonly PlayedWorker[]) {
    this.#hub = hub;
    this.#fleet = fleet;
    this.#workers = workers;
  }

  static async start(): Promise<PlayedFleet> {
    const clock = systemClock();
    const hub = await ClusterKeys.start(1, clock);
    const fleet = await FleetUnderTest.start({ keys: hub.keys });
    const workers = await Promise.all(
      WORKERS.map(async (clusterId, n) => ({
        ...{ clusterId, running: undefined, folder: undefined, isServed: false },
        keys: await ClusterKeys.start(2 + n, clock),
      })),
    );
    return new PlayedFleet(hub, fleet, workers);
  }

  async take(step: Step): Promise<void> {
    if (step.does === 'promote') {
      const { record, apiKey } = await this.#hub.mint();
      await this.#hub.promote(record);
      this.#standing.set(apiKey, record.keyId);
    } else if (step.does === 'restart the manager') {
      await this.#hub.restart();
      this.#fleet.restart(this.#hub.keys);
    } else if (step.does === 'revoke') await this.#revoke(step.which);
    else await this.#befall(step.does, this.#workers[step.which % this.#workers.length]!);
  }

  /** After the last fault: every worker is linked, and at that moment all keys are right. */
  async settle(): Promise<void> {
    for (const worker of this.#workers) {
      await this.#befall('heal', worker);
      worker.isServed = false;
      await eventually(() => {
        this.#dial(worker.clusterId);
        return worker.isServed;
      }, `${worker.clusterId} is linked`);
    }
    await this.#fleet.links.keysSettled();
    for (const { clusterId, keys } of this.#workers) {
      const told = (apiKey: string): string => `${clusterId}: ${keys.told(apiKey)}`;
      for (const apiKey of this.#standing.keys())
        expect(told(apiKey)).to.equal(`${clusterId}: good`);
      for (const apiKey of this.#revoked)
        expect(told(apiKey)).to.equal(`${clusterId}: INVALID_API_KEY`);
      expect(keys.store.records.size).to.equal(this.#standing.size);
    }
  }

  #dial(clusterId: string): void {
    try {
      const connection = this.#fleet.links.find(clusterId)?.dial();
      connection?.on('error', () => undefined);
    } catch {
      // the link ended a moment ago
    }
  }

  async stop(): Promise<void> {
    await this.#fleet.stop();
  }

  async #revoke(which: number): Promise<void> {
    const [apiKey, keyId] = [...this.#standing][which % Math.max(1, this.#standing.size)] ?? [];
    if (apiKey === undefined || keyId === undefined) return;
    await this.#hub.apiKeys.remove(this.#hub.apiKeys.find(keyId)!);
    this.#standing.delete(apiKey);
    this.#revoked.add(apiKey);
  }

  async #befall(does: 'cut' | 'kill' | 'heal', worker: PlayedWorker): Promise<void> {
    const { clusterId, keys } = worker;
    if (does !== 'heal') {
      worker.running?.links.stop();
      worker.running = undefined;
      if (does === 'kill') await keys.restart();
      return;
    }
    if (worker.running) return;
    const serve = (connection: Duplex): void => {
      worker.isServed = true;
      connection.destroy();
    };
    const terms = { clusterId, serve, keys: keys.copies };
    if (worker.folder === undefined) worker.running = await this.#fleet.join(terms);
    else worker.running = this.#fleet.worker({ ...terms, folder: worker.folder });
    worker.folder = worker.running.folder;
  }
}

describe('promoted keys through any fault', function () {
  it('are correct on each worker as soon as it is linked again', () =>
    comesRight(steps, () => PlayedFleet.start(), { numRuns: runs(16) }));
});
