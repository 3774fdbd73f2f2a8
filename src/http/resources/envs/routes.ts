import { wordRevisionOf, type EnvOverrides } from '../../../model/envs/env.ts';
import type { RegistryCredentials } from '../../../model/pools/pool-source.ts';
import type { Operations } from '../../../services/operations.ts';
import type { EnvView } from '../../../actors/views.ts';
import { refuseAdminFields } from '../../corridor/admin-fields.ts';
import { presentEditable, presentEnv, presentNarrowEnv } from './presenter.ts';
import { presentPage } from '../present-page.ts';
import { created, ok, route, versioned, type Answer, type Route } from '../../corridor/route.ts';
import {
  CreateEnvBody,
  DeleteEnvQuery,
  EnvDeletion,
  EnvEnvelope,
  EnvListQuery,
  EnvPage,
  EnvPath,
  NarrowEnvEnvelope,
  PatchEnvBody,
  ReplaceEnvBody,
} from './schema.ts';

export const envRoutes = (operations: Operations): readonly Route[] => [
  createEnv(operations),
  listEnvs(operations),
  getEnv(operations),
  replaceEnv(operations),
  patchEnv(operations),
  deleteEnv(operations),
  syncEnv(operations),
];

const createEnv = (operations: Operations): Route =>
  route({
    operationId: 'createEnv',
    method: 'POST',
    path: '/envs',
    access: 'tenant',
    summary: 'Create an env without members',
    body: CreateEnvBody,
    answers: { 201: EnvEnvelope },
    refusals: [
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'ALREADY_EXISTS',
      'CONFLICT',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    effect: {
      kind: 'recorded',
      find: async ({ caller, body }, mark) => {
        const found = await operations.findEnvByKey(caller, body.name, mark);
        return found && created(envelope(found));
      },
    },
    handle: async ({ caller, body: { clusterID: _here, ...body }, keyed }) =>
      created(
        envelope(
          await operations.createEnv(caller, {
            ...body,
            ...split(body.overrides),
            mark: keyed?.mark,
          }),
        ),
      ),
  });

const listEnvs = (operations: Operations): Route =>
  route({
    operationId: 'listEnvs',
    method: 'GET',
    path: '/envs',
    access: 'tenant',
    summary: 'List envs, newest first',
    query: EnvListQuery,
    answers: { 200: EnvPage },
    refusals: ['ADMIN_REQUIRED'],
    handle: async ({ caller, query: { limit, offset, ...filter } }) => {
      refuseAdminFields(caller, filter, ['all']);
      return ok(
        presentPage(
          await operations.listEnvs(caller, { all: filter.all ?? false }, { limit, offset }),
          presentEnv,
        ),
      );
    },
  });

const getEnv = (operations: Operations): Route =>
  route({
    operationId: 'getEnv',
    method: 'GET',
    path: '/envs/{name}',
    access: 'tenant',
    summary: 'Get an env',
    params: EnvPath,
    answers: { 200: EnvEnvelope },
    versioned: true,
    refusals: ['ENV_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => shown(await operations.getEnv(caller, params.name)),
  });

const replaceEnv = (operations: Operations): Route =>
  route({
    operationId: 'replaceEnv',
    method: 'PUT',
    path: '/envs/{name}',
    access: 'tenant',
    summary: 'Replace the editable fields of an env',
    params: EnvPath,
    body: ReplaceEnvBody,
    answers: { 200: EnvEnvelope },
    versioned: true,
    refusals: ['FORBIDDEN', 'ENV_NOT_FOUND', ...CHANGES],
    handle: async ({ caller, params, body, incoming }) =>
      shown(
        await operations.replaceEnv(caller, params.name, {
          ...body,
          ...split(body.overrides),
          ifMatch: incoming.ifMatch,
        }),
      ),
  });

const patchEnv = (operations: Operations): Route =>
  route({
    operationId: 'patchEnv',
    method: 'PATCH',
    path: '/envs/{name}',
    access: 'tenant',
    summary: 'Merge a patch into an env',
    params: EnvPath,
    body: PatchEnvBody,
    answers: { 200: EnvEnvelope },
    versioned: true,
    refusals: ['FORBIDDEN', 'ENV_NOT_FOUND', ...CHANGES],
    handle: async ({ caller, params, body: { overrides, ...rest }, incoming }) => {
      const { imagePullSecret, ...patch } = overrides ?? {};
      const registries =
        imagePullSecret === undefined && overrides !== null
          ? undefined
          : (imagePullSecret?.registries ?? []);
      const asked =
        overrides === undefined ? rest : { ...rest, overrides: overrides === null ? null : patch };
      return shown(
        await operations.patchEnv(caller, params.name, {
          patch: asked,
          ifMatch: incoming.ifMatch,
          registries,
        }),
      );
    },
  });

const deleteEnv = (operations: Operations): Route =>
  route({
    operationId: 'deleteEnv',
    method: 'DELETE',
    path: '/envs/{name}',
    access: 'tenant',
    summary: 'Delete an env with its members',
    params: EnvPath,
    query: DeleteEnvQuery,
    rules: { also: ({ query }) => (query.force ? ['deleteSandbox'] : []) },
    answers: { 200: EnvDeletion },
    refusals: ['FORBIDDEN', 'ENV_NOT_FOUND', 'ENV_HAS_RUNNING_SANDBOXES', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params, query }) => {
      const { record } = await operations.deleteEnv(caller, params.name, { force: query.force });
      return ok({ name: record.name, namespace: record.owner.namespace, status: 'Deleting' });
    },
  });

const syncEnv = (operations: Operations): Route =>
  route({
    operationId: 'syncEnv',
    method: 'POST',
    path: '/envs/{name}/sync-template',
    access: 'tenant',
    summary: 'Render all members again from the template',
    params: EnvPath,
    answers: { 200: NarrowEnvEnvelope },
    refusals: ['FORBIDDEN', 'ENV_NOT_FOUND', 'CONFLICT', 'ENV_SYNC_PARTIAL', 'UNAVAILABLE'],
    handle: async ({ caller, params }) =>
      ok({ env: presentNarrowEnv(await operations.syncEnv(caller, params.name)) }),
  });

const CHANGES = [
  'SANDBOX_TEMPLATE_NOT_FOUND',
  'CONFLICT',
  'PRECONDITION_FAILED',
  'FEATURE_DISABLED',
  'UNAVAILABLE',
] as const;

const envelope = (view: EnvView): object => ({
  env: presentEnv(view),
  editable: presentEditable(view),
});

const shown = (view: EnvView): Answer => versioned(ok(envelope(view)), wordRevisionOf(view.record));

/** Registry passwords are stored apart. */
const split = ({
  imagePullSecret,
  ...overrides
}: EnvOverrides & {
  readonly imagePullSecret?: { readonly registries: readonly RegistryCredentials[] };
}): { readonly overrides: EnvOverrides; readonly registries?: readonly RegistryCredentials[] } => ({
  overrides,
  registries: imagePullSecret?.registries,
});
