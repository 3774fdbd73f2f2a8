import type { Metrics } from '../../../contracts/metrics.ts';
import { tenantKey, type Tenant } from '../../../model/tenant.ts';
import type { PoolSyncView } from '../../../operations/views.ts';
import { poolSyncDocument } from './presenter.ts';
import type { PoolSyncPreviewWire } from './schema.ts';
import { TenantLine } from '../../limits/tenant-line.ts';
import { YamlThread } from './yaml-thread.ts';

/** Previews of one tenant that wait; one more is refused. */
export const MOST_PREVIEWS_WAITING = 8;

/**
 * Previews of pools: two at a time, one of a tenant, tenants in turn; long YAML is written apart
 * from the event loop.
 */
export class PoolPreviews {
  readonly #line: TenantLine;
  readonly #yaml = new YamlThread();

  constructor({ metrics, holdMs = 200 }: { readonly metrics: Metrics; readonly holdMs?: number }) {
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
    try {
      const view = await preview();
      return { specYaml: await this.#yaml.textOf(poolSyncDocument(view)), version: view.version };
    } finally {
      endTurn();
    }
  }
}
