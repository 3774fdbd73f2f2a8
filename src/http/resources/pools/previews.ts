import { setTimeout as pause } from 'node:timers/promises';
import type { Metrics } from '../../../contracts/metrics.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';
import type { PoolSyncView } from '../../../actors/views.ts';
import { poolSyncDocument } from './presenter.ts';
import type { PoolSyncPreviewWire } from './schema.ts';
import { TenantLine } from '../../limits/tenant-line.ts';
import { YamlThread } from './yaml-thread.ts';

/** Previews of one tenant that wait; one more is refused. */
export const MOST_PREVIEWS_WAITING = 8;

/** After a preview its place is empty for so many times what it took; this long at most. */
const REST = 3;
const MOST_REST_MS = 300;

export interface PoolPreviewsTerms {
  readonly metrics: Metrics;
  readonly holdMs?: number;
  /** Milliseconds that only grow; absent: the process' own. */
  readonly now?: () => number;
  readonly rest?: (ms: number) => Promise<void>;
}

/**
 * Previews of pools: two at a time, one of a tenant, tenants in turn. Long YAML is written apart
 * from the event loop; since that takes a processor from everybody, it may take a quarter of two.
 */
export class PoolPreviews {
  readonly #line: TenantLine;
  readonly #yaml = new YamlThread();
  readonly #now: () => number;
  readonly #rest: (ms: number) => Promise<void>;

  constructor({
    metrics,
    holdMs = 200,
    now = () => performance.now(),
    rest = async (ms) => {
      await pause(ms, undefined, { ref: false });
    },
  }: PoolPreviewsTerms) {
    this.#now = now;
    this.#rest = rest;
    this.#line = new TenantLine({
      most: 2,
      mostWaitingOfTenant: MOST_PREVIEWS_WAITING,
      mostWaiting: 16 * MOST_PREVIEWS_WAITING,
      holdMs,
    });
    metrics.read('sandpool_costly_waiting', () => [{ labels: {}, value: this.#line.waiting }]);
    metrics.read('sandpool_costly_refused_total', () => [
      { labels: {}, value: this.#line.refused },
    ]);
  }

  /**
   * Nothing of it is begun before its turn. Rejects with RATE_LIMITED where too many of the
   * tenant's wait.
   */
  async show(tenant: Tenant, preview: () => Promise<PoolSyncView>): Promise<PoolSyncPreviewWire> {
    const endTurn = await this.#line.turn(tenantKey(tenant));
    const began = this.#now();
    try {
      const view = await preview();
      return { specYaml: await this.#yaml.textOf(poolSyncDocument(view)), version: view.version };
    } finally {
      void this.#rest(Math.min(MOST_REST_MS, REST * (this.#now() - began))).then(endTurn);
    }
  }
}
