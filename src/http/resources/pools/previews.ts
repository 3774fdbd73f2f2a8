import { setTimeout as pause } from 'node:timers/promises';
import type { Metrics } from '../../../contracts/metrics.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';
import type { PoolSyncView } from '../../../actors/views.ts';
import { poolSyncDocument } from './presenter.ts';
import type { PoolSyncPreviewWire } from './schema.ts';
import { FairSlots } from '../../../lib/fair-slots.ts';
import { tooMuchWaits } from '../../../model/limit-refusals.ts';
import { YamlThread } from './yaml-thread.ts';

/** Per tenant; more are refused. */
export const MOST_PREVIEWS_WAITING = 8;

/** After a preview, its slot rests for REST times its duration, up to MOST_REST_MS. */
const REST = 3;
const MOST_REST_MS = 300;

export interface PoolPreviewsTerms {
  readonly metrics: Metrics;
  /** Monotonic, in ms. */
  readonly now?: () => number;
  readonly rest?: (ms: number) => Promise<void>;
}

/**
 * Runs previews: two at a time, one per tenant, tenants in turn. Long YAML takes CPU from everyone
 * even off the event loop, so slots rest for three quarters of the time.
 */
export class PoolPreviews {
  readonly #slots = new FairSlots({
    most: () => 2,
    mostOfTenant: () => 1,
    mostWaitingOfTenant: MOST_PREVIEWS_WAITING,
    mostWaiting: 16 * MOST_PREVIEWS_WAITING,
  });
  readonly #yaml = new YamlThread();
  readonly #now: () => number;
  readonly #rest: (ms: number) => Promise<void>;
  #waiting = 0;
  #refused = 0;

  constructor({
    metrics,
    now = () => performance.now(),
    rest = async (ms) => {
      await pause(ms, undefined, { ref: false });
    },
  }: PoolPreviewsTerms) {
    this.#now = now;
    this.#rest = rest;
    metrics.read('sandpool_costly_waiting', () => [{ labels: {}, value: this.#waiting }]);
    metrics.read('sandpool_costly_refused_total', () => [{ labels: {}, value: this.#refused }]);
  }

  /** Rejects with RATE_LIMITED if too many of the tenant wait. */
  async show(tenant: Tenant, preview: () => Promise<PoolSyncView>): Promise<PoolSyncPreviewWire> {
    const endTurn = await this.#turn(tenantKey(tenant));
    const began = this.#now();
    try {
      const view = await preview();
      return { specYaml: await this.#yaml.textOf(poolSyncDocument(view)), version: view.version };
    } finally {
      void this.#rest(Math.min(MOST_REST_MS, REST * (this.#now() - began))).then(endTurn);
    }
  }
  async #turn(tenant: string): Promise<() => void> {
    this.#waiting += 1;
    try {
      return await this.#slots.take(tenant, { full: tooMuchWaits });
    } catch (error) {
      this.#refused += 1;
      throw error;
    } finally {
      this.#waiting -= 1;
    }
  }
}
