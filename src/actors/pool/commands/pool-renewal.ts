import { isSameData } from '../../../lib/plain-data.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import type { PoolRecord, Unresolved } from '../../../model/pools/pool.ts';
import { Refusal, type RefusalCode } from '../../../model/refusals.ts';
import { withRendered } from '../../../model/pools/render-pool.ts';
import { shardOf } from '../../../model/shards.ts';
import { renderSource, type PoolRenderingDeps } from './pool-rendering.ts';
import { Resizing, withinQuota, type ResizingDeps } from '../../sandbox/commands/reservations.ts';

interface RenewingDeps extends PoolRenderingDeps {
  readonly log: Log;
}

export interface WriteRenewedDeps extends RenewingDeps, ResizingDeps {
  readonly supervisor: Pick<Supervisor, 'pools'>;
}

export interface PoolRenewalDeps extends WriteRenewedDeps {
  readonly supervisor: Supervisor;
  readonly clock: Clock;
}

const AGAIN_MS = 5_000;
const UNRESOLVED_AGAIN_MS = 60_000;

/**
 * One write at a time, for the pools that this replica leads. A pool that can't be rendered keeps
 * its definition, and is retried each minute.
 */
export class PoolRenewal {
  readonly #deps: PoolRenewalDeps;
  readonly #waiting = new Set<string>();
  readonly #again = new Map<string, () => void>();
  #running = false;
  #stopped = false;

  constructor(deps: PoolRenewalDeps) {
    this.#deps = deps;
  }

  /** Call it after a template was created, changed or removed. */
  template(name: string): void {
    this.#considerAll(({ source }) => source.templateName === name);
  }

  lead(shard: number): void {
    this.#considerAll(({ uid }) => shardOf(uid) === shard);
  }

  consider(uid: string): void {
    if (this.#stopped || !this.#outdated(uid)) return;
    this.#waiting.add(uid);
    if (!this.#running)
      this.#run().catch((error: unknown) => {
        this.#deps.log.error({ error }, 'pools-not-rendered');
      });
  }

  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
    for (const cancel of this.#again.values()) cancel();
    this.#again.clear();
  }

  #considerAll(which: (record: PoolRecord) => boolean): void {
    const { pools } = this.#deps.supervisor;
    for (const uid of pools.index.list(undefined, 0, Number.POSITIVE_INFINITY).ids) {
      const record = pools.get(uid)?.record;
      if (record && which(record)) this.consider(uid);
    }
  }

  #outdated(uid: string): boolean {
    const record = this.#deps.supervisor.pools.get(uid)?.record;
    return record !== undefined && this.#leads(uid) && isOutdated(this.#deps, record);
  }

  #leads(uid: string): boolean {
    return this.#deps.supervisor.shards.includes(shardOf(uid));
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      for (const uid of this.#waiting) {
        this.#waiting.delete(uid);
        await this.#renew(uid);
      }
    } finally {
      this.#running = false;
    }
  }

  async #renew(uid: string): Promise<void> {
    const { supervisor, log } = this.#deps;
    const before = supervisor.pools.get(uid)?.record;
    if (!before) return;
    try {
      const record = await writeRenewed(this.#deps, before, (current) =>
        this.#leads(uid) ? current : undefined,
      );
      if (record?.unresolved) this.#tryAgain(uid, UNRESOLVED_AGAIN_MS);
    } catch (error) {
      log.warn({ entity: 'pool', uid, error }, 'pool-not-rendered-or-written');
      this.#tryAgain(uid, AGAIN_MS);
    }
  }

  #tryAgain(uid: string, afterMs: number): void {
    const { clock } = this.#deps;
    this.#again.get(uid)?.();
    if (this.#stopped) return;
    this.#again.set(
      uid,
      clock.at(clock.now() + afterMs, () => {
        this.#again.delete(uid);
        this.consider(uid);
      }),
    );
  }
}

/**
 * Growth beyond the owner's quota keeps the old definition and reports that. Undefined if the pool
 * is gone.
 */
export const writeRenewed = async (
  deps: WriteRenewedDeps,
  pool: Pick<PoolRecord, 'uid' | 'owner'>,
  asked: (current: PoolRecord) => PoolRecord | undefined,
): Promise<PoolRecord | undefined> => {
  const resizing = new Resizing(deps, pool);
  try {
    const record = await deps.supervisor.pools.change(
      pool.uid,
      async (current) => {
        const otherwise = asked(current);
        if (!otherwise) return current;
        const next = isOutdated(deps, otherwise) ? await renewed(deps, otherwise) : otherwise;
        return await withinQuota(resizing, current, { next, otherwise });
      },
      resizing.permitted,
    );
    if (record) await resizing.landed(record);
    return record;
  } catch (error) {
    await resizing.failed(error);
    throw error;
  }
};

/** False with `autoUpdate: false`. Never goes back to an older template version. */
const isOutdated = (
  { templates }: Pick<PoolRenderingDeps, 'templates'>,
  record: PoolRecord,
): boolean => {
  const {
    source,
    updateStrategy,
    deleting,
    unrendered,
    unresolved,
    templateVersion = '0',
  } = record;
  if (!updateStrategy.autoUpdate || deleting !== false) return false;
  if (unrendered === true) return true;
  const template =
    source.templateName === undefined || source.templateVersion !== undefined
      ? undefined
      : templates.get(source.templateName);
  const ahead = template ? Number(template.version) - Number(templateVersion) : 0;
  return ahead > 0 || (unresolved !== undefined && ahead === 0);
};

const renewed = async (deps: RenewingDeps, record: PoolRecord): Promise<PoolRecord> => {
  const { source, owner } = record;
  try {
    return withRendered(record, source, await renderSource(deps, source, owner.namespace));
  } catch (error) {
    if (!(error instanceof Refusal) || error.code === 'UNAVAILABLE') throw error;
    const version =
      source.templateName === undefined
        ? undefined
        : deps.templates.get(source.templateName)?.version;
    const unresolved: Unresolved = {
      reason: REASONS[error.code] ?? 'SourceInvalid',
      message: error.message,
      templateVersion: version,
    };
    if (isSameData(unresolved, record.unresolved)) return record;
    deps.log.warn(
      { entity: 'pool', uid: record.uid, name: record.name, why: error.message },
      'pool-not-rendered',
    );
    return { ...record, unresolved };
  }
};

const REASONS: Readonly<Partial<Record<RefusalCode, string>>> = {
  SANDBOX_TEMPLATE_NOT_FOUND: 'TemplateNotFound',
  FEATURE_DISABLED: 'FeatureDisabled',
};
