import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Coordination } from '../contracts/coordination.ts';
import { RecordExists, type Records } from '../contracts/record-store.ts';
import { DefinitionRefused, OutcomeUnknown, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../model/pool.ts';
import { idempotencyKeyReused, invalidArgument, poolAlreadyExists, poolQuotaExceeded, templateNotFound } from '../model/refusals.ts';
import { renderDefinition } from '../model/render-definition.ts';
import type { InstanceDefinition, TemplateRecord } from '../model/template.ts';
import { updateRevisionOf } from '../model/update-revision.ts';
import { sameTenant, type Caller, type Tenant } from '../model/tenant.ts';
import { poolViewOf } from './find-pool.ts';
import type { CreatePoolRequest, Operations } from './operations.ts';
import { requireReserved } from './reservations.ts';
import type { TemplateCatalog } from './template-catalog.ts';

export interface CreatePoolDeps {
  readonly supervisor: Supervisor;
  readonly pools: Records<PoolRecord>;
  readonly templates: TemplateCatalog;
  readonly driver: SandboxDriver;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly newUid: () => string;
  readonly limits: { readonly pools: number; readonly replicas: number };
}

const MOST_CHOICES = 50;

/** Makes a pool of the caller's from a template (operation `POST /sandboxpools`). Its filling begins at once. */
export const createPool = (deps: CreatePoolDeps): Operations['createPool'] => async (caller, request) => {
  const template = deps.templates.get(request.templateName ?? '');
  if (!template) throw templateNotFound(deps.templates.list(MOST_CHOICES).map(choiceOf));
  if (deps.supervisor.pools.index.uidOf(caller.namespace, request.name) !== undefined) throw poolAlreadyExists();
  const definition = renderDefinition(template.document);
  checkDefinition(deps.driver, definition);
  const draft = draftOf(deps, caller, { request, template, definition });
  const since = deps.clock.now();
  deps.supervisor.settleLater(draft.owner);
  await reserve(deps, draft);
  let record: PoolRecord;
  try {
    await requireReserved(deps, { tenant: draft.owner, name: draft.uid, resources: ['pools', 'replicas'], since });
    record = await deps.pools.create(draft);
  } catch (error) {
    // What may have landed is settled later.
    if (!(error instanceof OutcomeUnknown)) await release(deps, draft);
    throw error instanceof RecordExists ? poolAlreadyExists() : error;
  }
  deps.supervisor.pools.add(record);
  return poolViewOf(deps.supervisor, record);
};

/** See Operations. */
export const createdPoolUnder = ({ supervisor }: Pick<CreatePoolDeps, 'supervisor'>): Operations['createdPoolUnder'] => async (caller, name, mark) => {
  if (supervisor.pools.index.uidOf(caller.namespace, name) === undefined) await supervisor.pools.lookUp(caller.namespace, name);
  const uid = supervisor.pools.index.uidOf(caller.namespace, name);
  const pool = uid === undefined ? undefined : supervisor.pools.get(uid);
  if (!pool || !sameTenant(pool.record.owner, caller) || pool.record.mark?.key !== mark.key) return undefined;
  if (pool.record.mark.body !== mark.body) throw idempotencyKeyReused();
  return pool;
};

const choiceOf = ({ name, document }: TemplateRecord) => ({ name, description: document.spec.description ?? '' });

const checkDefinition = (driver: SandboxDriver, definition: InstanceDefinition): void => {
  try {
    driver.check(definition);
  } catch (error) {
    if (error instanceof DefinitionRefused) throw invalidArgument('templateName', `this daemon can't run the template: ${error.message}`);
    throw error;
  }
};

const draftOf = (deps: CreatePoolDeps, caller: Caller, from: { request: CreatePoolRequest; template: TemplateRecord; definition: InstanceDefinition }): Omit<PoolRecord, 'revision'> => {
  const { request, template, definition } = from;
  const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
  return {
    uid: deps.newUid(), name: request.name, owner, createdAt: deps.clock.now(), replicas: request.replicas,
    templateName: template.name, templateVersion: template.version, labels: request.labels,
    annotations: request.annotations, ...(request.mark ? { mark: request.mark } : {}), definition, updateRevision: updateRevisionOf(definition), breaker: CLOSED_BREAKER, deleting: false,
  };
};

const reserve = async (deps: CreatePoolDeps, { owner, uid, replicas }: Omit<PoolRecord, 'revision'>): Promise<void> => {
  const { coordination, limits } = deps;
  if (!await coordination.reserve(owner, 'pools', { name: uid, amount: 1, limit: limits.pools })) throw poolQuotaExceeded();
  let granted = false;
  try {
    granted = await coordination.reserve(owner, 'replicas', { name: uid, amount: replicas, limit: limits.replicas });
  } finally {
    // Where even that is out of reach, what was reserved is settled later.
    if (!granted) await coordination.release(owner, 'pools', uid).catch(() => undefined);
  }
  if (!granted) throw poolQuotaExceeded();
};

const release = async ({ coordination }: CreatePoolDeps, { owner, uid }: Omit<PoolRecord, 'revision'>): Promise<void> => {
  await coordination.release(owner, 'pools', uid);
  await coordination.release(owner, 'replicas', uid);
};
