import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { PoolRecord } from '../../../model/pools/pool.ts';
import { poolBeingDeleted, poolNotFound, poolOfEnv } from '../../../model/refusals.ts';
import { poolSpecOf, withRendered } from '../../../model/pools/render-pool.ts';
import { findPool, poolViewOf } from './find-pool.ts';
import type { PoolOperations } from './pool-operations.ts';
import { lookupsOf, renderSource, type PoolRenderingDeps } from './pool-rendering.ts';
import { Resizing, type ResizingDeps } from '../../sandbox/commands/reservations.ts';
import { asUnavailable } from './update-pool.ts';

export interface SyncPoolDeps extends PoolRenderingDeps, ResizingDeps {
  readonly supervisor: Supervisor;
}

/**
 * Renders a pool even without `autoUpdate`, and keeps its replicas (operation `POST
 * /sandboxpools/{name}/sync-template`). Refuses with QUOTA_EXCEEDED.
 */
export const syncPool =
  (deps: SyncPoolDeps): PoolOperations['syncPool'] =>
  async (caller, name) => {
    const { supervisor } = deps;
    const { record: before } = await findPool(supervisor, caller, name);
    if (before.env) throw poolOfEnv(before.env.name, before.name);
    await refreshTemplate(deps, before);
    const resizing = new Resizing(deps, before);
    try {
      const record = await supervisor.pools.change(
        before.uid,
        async (current) => {
          const next = await syncedPool(deps, current);
          await resizing.cover(current, next);
          return next;
        },
        resizing.permitted,
      );
      if (!record) throw poolNotFound(before.name);
      await resizing.landed(record);
      return poolViewOf(supervisor, record);
    } catch (error) {
      await resizing.failed(error);
      throw asUnavailable(error);
    }
  };

export const syncedPool = async (
  deps: PoolRenderingDeps,
  current: PoolRecord,
): Promise<PoolRecord> => {
  if (current.deleting !== false) throw poolBeingDeleted();
  const rendered = await renderSource(deps, current.source, current.owner.namespace);
  const isThere =
    rendered.updateRevision === current.updateRevision &&
    rendered.templateVersion === current.templateVersion &&
    current.unrendered !== true;
  return isThere ? current : withRendered(current, current.source, rendered);
};

/** Writes nothing (operation `POST /sandboxpools/{name}/sync-template/preview`). */
export const previewPoolSync =
  (deps: SyncPoolDeps): PoolOperations['previewPoolSync'] =>
  async (caller, name) => {
    const { record } = await findPool(deps.supervisor, caller, name);
    await refreshTemplate(deps, record);
    const { templateVersion, updateRevision } = await renderSource(
      deps,
      record.source,
      record.owner.namespace,
    );
    return {
      record,
      spec: poolSpecOf(record.source, lookupsOf(deps)).spec,
      version: templateVersion ?? updateRevision,
    };
  };

/** Uncached, because the mirror may lack an admin's last change. */
export const refreshTemplate = async (
  { templates }: Pick<SyncPoolDeps, 'templates'>,
  { source: { templateName } }: Pick<PoolRecord, 'source'>,
): Promise<void> => {
  if (templateName !== undefined) await templates.refresh(templateName);
};
