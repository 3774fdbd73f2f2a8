import { wordRevisionOfPool } from '../../../model/pools/pool.ts';
import type { Operations } from '../../../services/operations.ts';
import type { PoolView } from '../../../actors/views.ts';
import { refuseAdminFields } from '../../corridor/admin-fields.ts';
import { presentPage } from '../present-page.ts';
import type { PoolPreviews } from './previews.ts';
import { presentListedPool, presentPool, presentPoolDeletion } from './presenter.ts';
import {
  created,
  DEPRECATED_SINCE,
  ok,
  route,
  versioned,
  type Answer,
  type Route,
} from '../../corridor/route.ts';
import {
  CreatePoolBody,
  DeletePoolQuery,
  PoolDeletion,
  PoolEnvelope,
  PoolListQuery,
  PoolPage,
  PoolPath,
  PoolSyncPreview,
  UpdatePoolBody,
  type PoolChangeBody,
  type PoolSpecBody,
} from './schema.ts';
import { sourceOf } from '../../../model/pools/pool-source.ts';
import { invalidArgument } from '../../../model/refusals.ts';
import type { PoolChange, PoolSpec } from '../../../actors/pool/commands/pool-operations.ts';

export const poolRoutes = (operations: Operations, previews: PoolPreviews): readonly Route[] => [
  createPool(operations),
  listPools(operations),
  getPool(operations),
  updatePool(operations),
  deletePool(operations),
  syncPool(operations),
  previewPoolSync(operations, previews),
];

const createPool = (operations: Operations): Route =>
  route({
    operationId: 'createPool',
    method: 'POST',
    path: '/sandboxpools',
    access: 'tenant',
    summary: 'Create a pool from a template, by name or inline',
    body: CreatePoolBody,
    answers: { 201: PoolEnvelope },
    refusals: [
      'CLUSTER_NOT_FOUND',
      'CLUSTER_UNAVAILABLE',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'ALREADY_EXISTS',
      'QUOTA_EXCEEDED',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    effect: {
      kind: 'recorded',
      find: async ({ caller, body }, mark) => {
        const found = await operations.findPoolByKey(caller, body.name, mark);
        return found && created({ template: presentPool(found) });
      },
    },
    handle: async ({ caller, body, keyed }) => {
      const { name, labels, annotations, clusterID: _here, ...rest } = body;
      const request = {
        source: {},
        ...poolSpecOf(rest),
        name,
        labels,
        annotations,
        mark: keyed?.mark,
      };
      return created({ template: presentPool(await operations.createPool(caller, request)) });
    },
  });

const listPools = (operations: Operations): Route =>
  route({
    operationId: 'listPools',
    method: 'GET',
    path: '/sandboxpools',
    access: 'tenant',
    summary: 'List pools, newest first',
    query: PoolListQuery,
    answers: { 200: PoolPage },
    refusals: ['ADMIN_REQUIRED'],
    handle: async ({ caller, query: { limit, offset, clusterID: _here, ...filter } }) => {
      refuseAdminFields(caller, filter, ['all']);
      return ok(
        presentPage(
          await operations.listPools(
            caller,
            { ...filter, all: filter.all ?? false },
            { limit, offset },
          ),
          presentListedPool,
        ),
      );
    },
  });

const getPool = (operations: Operations): Route =>
  route({
    operationId: 'getPool',
    method: 'GET',
    path: '/sandboxpools/{name}',
    access: 'tenant',
    summary: 'Get a pool',
    params: PoolPath,
    answers: { 200: PoolEnvelope },
    versioned: true,
    refusals: ['POOL_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => shown(await operations.getPool(caller, params.name)),
  });

const updatePool = (operations: Operations): Route =>
  route({
    operationId: 'updatePool',
    method: 'PUT',
    path: '/sandboxpools/{name}',
    access: 'tenant',
    summary: 'Change a pool; omitted fields stay unchanged',
    params: PoolPath,
    body: UpdatePoolBody,
    answers: { 200: PoolEnvelope },
    versioned: true,
    refusals: [
      'FORBIDDEN',
      'POOL_NOT_FOUND',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'CONFLICT',
      'PRECONDITION_FAILED',
      'QUOTA_EXCEEDED',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params, body, incoming: { ifMatch } }) =>
      shown(await operations.updatePool(caller, params.name, { ifMatch, ...poolChangeOf(body) })),
  });

const deletePool = (operations: Operations): Route =>
  route({
    operationId: 'deletePool',
    method: 'DELETE',
    path: '/sandboxpools/{name}',
    access: 'tenant',
    summary: 'Delete a pool; running sandboxes continue unless forced',
    params: PoolPath,
    query: DeletePoolQuery,
    rules: { also: ({ query }) => (query.force ? ['deleteSandbox'] : []) },
    answers: { 200: PoolDeletion },
    refusals: ['FORBIDDEN', 'POOL_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params, query }) =>
      ok(
        presentPoolDeletion(
          await operations.deletePool(caller, params.name, { force: query.force }),
        ),
      ),
  });

const syncPool = (operations: Operations): Route =>
  route({
    operationId: 'syncPool',
    method: 'POST',
    path: '/sandboxpools/{name}/sync-template',
    access: 'tenant',
    summary: 'Render a pool again from its template',
    deprecated: { since: DEPRECATED_SINCE, method: 'PUT', successor: '/sandboxpools/{name}' },
    params: PoolPath,
    answers: { 200: PoolEnvelope },
    refusals: [
      'FORBIDDEN',
      'POOL_NOT_FOUND',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'QUOTA_EXCEEDED',
      'CONFLICT',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params }) => shown(await operations.syncPool(caller, params.name)),
  });

const previewPoolSync = (operations: Operations, previews: PoolPreviews): Route =>
  route({
    operationId: 'previewPoolSync',
    method: 'POST',
    path: '/sandboxpools/{name}/sync-template/preview',
    access: 'tenant',
    summary: 'Preview the result of sync-template',
    params: PoolPath,
    answers: { 200: PoolSyncPreview },
    effect: { kind: 'unkeyed' }, // no writes: a repetition is cheaper than storage
    refusals: [
      'FORBIDDEN',
      'POOL_NOT_FOUND',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'FEATURE_DISABLED',
      'RATE_LIMITED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params, room }) => {
      const shownSync = await previews.show(caller, () =>
        operations.previewPoolSync(caller, params.name),
      );
      // May refuse, since nothing was written.
      room().hold(Buffer.byteLength(shownSync.specYaml));
      return ok(shownSync);
    },
  });

const shown = (view: PoolView): Answer =>
  versioned(ok({ template: presentPool(view) }), wordRevisionOfPool(view.record));

/** Registry passwords are stored apart. Clients can't set `imagePullSecretConfigured`. */
const poolSpecOf = (body: PoolSpecBody): PoolSpec => {
  const {
    access,
    replicas,
    minReplicas,
    maxReplicas,
    updateStrategy,
    labels,
    annotations,
    overrides,
    ...rest
  } = body;
  if (rest.templateName !== undefined && rest.template !== undefined)
    throw invalidArgument('template', 'cannot be combined with templateName');
  const { imagePullSecret, imagePullSecretConfigured: _, ...others } = overrides ?? {};
  const source = sourceOf({ ...rest, ...(overrides ? { overrides: others } : {}) });
  return {
    ...(isEmpty(source) ? {} : { source }),
    ...(imagePullSecret ? { registries: imagePullSecret.registries } : {}),
    ...(access === undefined ? {} : { access }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(minReplicas === undefined ? {} : { minReplicas }),
    ...(maxReplicas === undefined ? {} : { maxReplicas }),
    ...(updateStrategy === undefined ? {} : { updateStrategy }),
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
};

const isEmpty = (object: object): boolean => Object.keys(object).length === 0;

/** A null unsets its field. */
const poolChangeOf = (body: PoolChangeBody): PoolChange => {
  const unset = nullsIn(body);
  const spec = poolSpecOf(withoutNulls(body) as PoolSpecBody);
  return { ...spec, ...(unset.length === 0 ? {} : { unset }) };
};

/** Nested as in `overrides.image`. */
const nullsIn = (value: object, before = ''): readonly string[] =>
  Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
    if (part === null) return [`${before}${name}`];
    return isNested(before, name, part) ? nullsIn(part, `${name}.`) : [];
  });

const withoutNulls = (value: object, before = ''): object =>
  Object.fromEntries(
    Object.entries(value).flatMap(([name, part]: [string, unknown]) => {
      if (part === null) return [];
      return [[name, isNested(before, name, part) ? withoutNulls(part, `${name}.`) : part]];
    }),
  );

const isNested = (before: string, name: string, part: unknown): part is object =>
  before === '' && (name === 'overrides' || name === 'updateStrategy') && part !== undefined;
