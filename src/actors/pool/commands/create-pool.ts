import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { PullSecretOwner, PullSecrets } from '../../../contracts/pull-secrets.ts';
import { CLOSED_BREAKER, DEFAULT_UPDATE_STRATEGY } from '../../../model/pools/pool.ts';
import type { PoolSource } from '../../../model/pools/pool-source.ts';
import { idempotencyKeyReused, poolAlreadyExists } from '../../../model/refusals.ts';
import type { RenderedPool } from '../../../model/pools/render-pool.ts';
import { accessField, sameTenant, type Caller, type Tenant } from '../../../model/tenant.ts';
import { poolViewOf } from './find-pool.ts';
import type { CreatePoolRequest, PoolOperations } from './pool-operations.ts';
import { makePool, type MakePoolDeps, type PoolDraft, type Preparation } from './make-pool.ts';
import { renderSource, type PoolRenderingDeps } from './pool-rendering.ts';
import { scaleOf } from './pool-scale.ts';
import { tiePasswords } from './tie-passwords.ts';

export interface CreatePoolDeps extends PoolRenderingDeps, MakePoolDeps {
  readonly supervisor: Supervisor;
  readonly newUid: () => string;
  readonly pullSecrets: PullSecrets;
  readonly background: (name: string, work: Promise<void>) => void;
}

/** From a named or inline template (operation `POST /sandboxpools`). */
export const createPool =
  (deps: CreatePoolDeps): PoolOperations['createPool'] =>
  async (caller, request) => {
    const { registries = [] } = request;
    const source =
      registries.length === 0
        ? request.source
        : {
            ...request.source,
            overrides: { ...request.source.overrides, imagePullSecretConfigured: true },
          };
    const rendered = await renderSource(deps, source, caller.namespace);
    const { replicas } = scaleOf(request);
    if (deps.supervisor.pools.index.uidOf(caller.namespace, request.name) !== undefined)
      throw poolAlreadyExists();
    await deps.coordination.whenKnown(caller);
    const draft = draftOf(deps, caller, { request, made: { replicas, source, ...rendered } });
    const secretOwner: PullSecretOwner = {
      kind: 'pool',
      namespace: draft.owner.namespace,
      name: draft.name,
      uid: draft.uid,
    };
    const record = await makePool(
      deps,
      draft,
      registries.length === 0
        ? NOTHING
        : {
            prepare: () => deps.pullSecrets.keep(secretOwner, registries),
            undo: () => deps.pullSecrets.forget(secretOwner),
          },
    );
    if (registries.length > 0)
      deps.background('pull secret', tiePasswords(deps, secretOwner, registries));
    return poolViewOf(deps.supervisor, record);
  };

const NOTHING: Preparation = { prepare: async () => undefined, undo: async () => undefined };

/** See PoolOperations. */
export const findPoolByKey =
  ({ supervisor }: Pick<CreatePoolDeps, 'supervisor'>): PoolOperations['findPoolByKey'] =>
  async (caller, name, mark) => {
    if (supervisor.pools.index.uidOf(caller.namespace, name) === undefined)
      await supervisor.pools.lookUp(caller.namespace, name);
    const pool = supervisor.pools.named(caller.namespace, name);
    if (!pool || !sameTenant(pool.record.owner, caller) || pool.record.mark?.key !== mark.key)
      return undefined;
    if (pool.record.mark.body !== mark.body) throw idempotencyKeyReused();
    return pool;
  };

const draftOf = (
  deps: CreatePoolDeps,
  caller: Caller,
  {
    request,
    made,
  }: {
    readonly request: CreatePoolRequest;
    readonly made: { readonly replicas: number; readonly source: PoolSource } & RenderedPool;
  },
): PoolDraft => {
  const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
  const { name, minReplicas, maxReplicas, updateStrategy, labels, annotations, mark } = request;
  return {
    uid: deps.newUid(),
    name,
    owner,
    ...accessField(request.access),
    createdAt: deps.clock.now(),
    labels,
    annotations,
    mark,
    minReplicas,
    maxReplicas,
    ...made,
    updateStrategy: { ...DEFAULT_UPDATE_STRATEGY, ...updateStrategy },
    breaker: CLOSED_BREAKER,
    deleting: false,
  };
};
