import { created, ok, route, secret, type Answer, type Route } from '../../corridor/route.ts';
import { isDnsLabel } from '../../../model/identifiers.ts';
import { featureDisabled, poolNotFound, Refusal } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Operations } from '../../../services/operations.ts';
import {
  createSandbox,
  namedPool,
  namesImage,
  poolNameOf,
  type CreateTerms,
} from './create-sandbox.ts';
import { listRunning } from './list-sandboxes.ts';
import {
  domainOf,
  presentDetail,
  presentListed,
  presentSandbox,
  type ShowTerms,
} from './presenter.ts';
import { requireLive } from './require-live.ts';
import {
  Connection,
  ListedSandbox,
  ListQuery,
  NewSandbox,
  NewTimeout,
  Pause,
  SandboxDetail,
  SandboxPath,
  ShownSandbox,
  Template,
  TemplatePath,
  tokenOf,
} from './schema.ts';
import { z } from 'zod';

export interface ControlDeps {
  readonly operations: Operations;
  readonly gate: ShowTerms['gate'];
  readonly terms: CreateTerms & {
    readonly domain: string | undefined;
  };
}

/** In seconds, per version of the path. */
const LIFETIME = { v1: 15, v2: 300 };
const CONNECTED_SECONDS = 300;

/** Rows are named as their REST operations, so policy, audit and limits treat both APIs alike. */
export const controlRoutes = (deps: ControlDeps): readonly Route[] => [
  creation(deps, '/sandboxes', LIFETIME.v1),
  creation(deps, '/v2/sandboxes', LIFETIME.v2),
  list(deps),
  ...looks(deps),
  template(deps),
  ...changes(deps),
  connection(deps, '/sandboxes/{sandboxId}/connect'),
  connection(deps, '/v2/sandboxes/{sandboxId}/connect'),
];

const creation = (deps: ControlDeps, path: string, lifetimeSeconds: number): Route =>
  route({
    operationId: 'claimSandbox',
    rules: {
      as: { operationId: 'claimSandbox', path: '/sandboxes' },
      ignores: ['secure', 'allow_internet_access'],
      body: ({ body: { templateID, envVars, timeout = lifetimeSeconds, ...body } }) => ({
        ...body,
        ...ruledEnd(timeout),
        poolName: namedPool(templateID, deps.terms),
        env: envVars,
      }),
    },
    method: 'POST',
    path,
    access: 'tenant',
    summary: 'Claim an idle instance of a pool',
    body: NewSandbox,
    answers: { 201: ShownSandbox },
    refusals: [
      'POOL_NOT_FOUND',
      'POOL_EXHAUSTED',
      'QUOTA_EXCEEDED',
      'TOO_MANY_WAITING',
      'UNAVAILABLE',
    ],
    effect: { kind: 'opened', pending: (mark) => deps.operations.pendingClaim(mark) },
    waits: ({ body, waitMs }) => (waitMs ?? deps.terms.waitMs) > 0 || namesImage(body.templateID),
    handle: async ({ caller, body, keyed, step, waitMs, signal, incoming }) => {
      const sandbox = await createSandbox(deps, caller, {
        body,
        lifetimeSeconds,
        waitMs,
        more: { opening: keyed?.opening, step },
        signal: signal(),
      });
      return secret(created(presentSandbox(sandbox, showTerms(deps, caller, incoming.base()))));
    },
  });

const list = ({ operations, terms }: ControlDeps): Route =>
  route({
    operationId: 'listSandboxes',
    rules: { as: { operationId: 'listSandboxes', path: '/sandboxes' } },
    method: 'GET',
    path: '/v2/sandboxes',
    access: 'tenant',
    summary: 'List running sandboxes; by default newest first',
    query: ListQuery,
    answers: { 200: z.array(ListedSandbox) },
    refusals: ['CLUSTER_NOT_FOUND'],
    handle: async ({ caller, query }) => {
      const { template } = query;
      const pool = template === undefined ? {} : { poolName: poolNameOf(template, terms) };
      const { items, next } = await listRunning(operations, caller, { ...query, ...pool });
      const listed = ok(items.map(presentListed));
      return next ? { ...listed, headers: { 'x-next-token': tokenOf(next) } } : listed;
    },
  });

const looks = (deps: ControlDeps): readonly Route[] => [
  route({
    operationId: 'getSandbox',
    method: 'GET',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'Get a sandbox',
    params: SandboxPath,
    answers: { 200: SandboxDetail },
    refusals: ['SANDBOX_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params, incoming }) => {
      const view = await requireLive(deps.operations, caller, params.sandboxId);
      return secret(ok(presentDetail(view, showTerms(deps, caller, incoming.base()))));
    },
  }),
  route({
    operationId: 'getSandbox',
    rules: { as: { operationId: 'getSandbox', path: '/sandboxes/{sandboxId}' } },
    method: 'GET',
    path: '/sandboxes/{sandboxId}/metrics',
    access: 'tenant',
    summary: 'Get the metrics of a sandbox; always empty',
    params: SandboxPath,
    answers: { 200: z.array(z.object({})) },
    refusals: ['SANDBOX_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      await requireLive(deps.operations, caller, params.sandboxId);
      return ok([]);
    },
  }),
];

const template = ({ operations, terms }: ControlDeps): Route =>
  route({
    operationId: 'getPool',
    rules: { as: { operationId: 'getPool', path: '/sandboxpools/{name}' } },
    method: 'GET',
    path: '/templates/aliases/{name}',
    access: 'tenant',
    summary: 'Check whether a template exists: a pool, or an env',
    params: TemplatePath,
    answers: { 200: Template },
    refusals: ['POOL_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const name = poolNameOf(params.name, terms);
      if (!isDnsLabel(name)) throw poolNotFound(name);
      await operations.getPool(caller, name).catch(async (error: unknown) => {
        if (!(error instanceof Refusal && error.code === 'POOL_NOT_FOUND')) throw error;
        await operations.getEnv(caller, name);
      });
      return ok({ templateID: params.name, public: false });
    },
  });

const DONE: Answer = { status: 204, body: {} };

const changes = (deps: ControlDeps): readonly Route[] => [
  deleteSandbox(deps),
  setIdleTimeout(deps),
  setSandboxState(deps),
];

const deleteSandbox = (deps: ControlDeps): Route =>
  route({
    operationId: 'deleteSandbox',
    method: 'DELETE',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'End a sandbox',
    params: SandboxPath,
    answers: { 204: z.object({}) },
    refusals: ['SANDBOX_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params }) => {
      await requireLive(deps.operations, caller, params.sandboxId);
      await deps.operations.deleteSandbox(caller, params.sandboxId);
      return DONE;
    },
  });

const setIdleTimeout = (deps: ControlDeps): Route =>
  route({
    operationId: 'setIdleTimeout',
    rules: {
      as: {
        operationId: 'setIdleTimeout',
        method: 'PUT',
        path: '/sandboxes/{sandboxId}/idle-timeout',
      },
      body: ({ body: { timeout } }) => ruledEnd(timeout),
    },
    method: 'POST',
    path: '/sandboxes/{sandboxId}/timeout',
    access: 'tenant',
    summary: 'Set when a sandbox ends',
    params: SandboxPath,
    body: NewTimeout,
    answers: { 204: z.object({}) },
    refusals: ['SANDBOX_NOT_FOUND', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params, body }) => {
      await deps.operations.setSandboxEnd(caller, params.sandboxId, {
        lifetimeMs: body.timeout * 1_000,
        extend: false,
      });
      return DONE;
    },
  });

const setSandboxState = (deps: ControlDeps): Route =>
  route({
    operationId: 'setSandboxState',
    rules: { as: STATE, body: () => ({ state: 'paused' }) },
    method: 'POST',
    path: '/sandboxes/{sandboxId}/pause',
    access: 'tenant',
    summary: 'Pause a sandbox',
    params: SandboxPath,
    body: Pause,
    answers: { 204: z.object({}), 409: z.object({ code: z.int(), message: z.string() }) },
    refusals: ['SANDBOX_NOT_FOUND', 'CONFLICT', 'FEATURE_DISABLED', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params, body }) => {
      refuseWithoutMemory(body);
      const { paused } = await requireLive(deps.operations, caller, params.sandboxId);
      if (paused) return PAUSED_ALREADY;
      await deps.operations.setSandboxState(caller, params.sandboxId, 'paused');
      return DONE;
    },
  });

/** The only use of 409: see `shownError`. */
const PAUSED_ALREADY: Answer = {
  status: 409,
  body: { code: 409, message: 'the sandbox is paused already' },
};

const STATE = {
  operationId: 'setSandboxState',
  method: 'PUT',
  path: '/sandboxes/{sandboxId}/state',
} as const;

const connection = (deps: ControlDeps, path: string): Route =>
  route({
    operationId: 'setSandboxState',
    rules: {
      as: STATE,
      body: ({ body: { timeout = CONNECTED_SECONDS } }) => ({
        ...ruledEnd(timeout),
        state: 'running',
      }),
      also: () => ['setIdleTimeout'],
    },
    method: 'POST',
    path,
    access: 'tenant',
    summary: 'Resume a sandbox and extend its lifetime',
    params: SandboxPath,
    body: Connection,
    answers: { 200: ShownSandbox, 201: ShownSandbox },
    refusals: ['SANDBOX_NOT_FOUND', 'FEATURE_DISABLED', 'UNAVAILABLE'],
    effect: { kind: 'repeatable' },
    handle: async ({ caller, params: { sandboxId }, body, incoming }) => {
      const { operations } = deps;
      refuseWithoutMemory(body);
      const { paused, autoPause } = await requireLive(operations, caller, sandboxId);
      if (paused) await operations.setSandboxState(caller, sandboxId, 'running');
      const view = await operations.setSandboxEnd(caller, sandboxId, {
        lifetimeMs: (body.timeout ?? CONNECTED_SECONDS) * 1_000,
        extend: !(paused && autoPause),
      });
      const shown = presentSandbox(view, showTerms(deps, caller, incoming.base()));
      return secret(paused ? created(shown) : ok(shown));
    },
  });

/** For rules. A REST `idleTimeout` of 0 would mean never. */
const ruledEnd = (timeout: number) => ({ timeout, idleTimeout: Math.max(timeout, 1) });

const refuseWithoutMemory = ({ memory }: { readonly memory?: boolean }): void => {
  if (memory === false) throw featureDisabled('memory', 'pauses that keep only files');
};

const showTerms = (
  { operations, gate, terms }: ControlDeps,
  caller: Caller,
  base: string,
): ShowTerms => ({
  operations,
  gate,
  caller,
  domain: domainOf(terms, base),
});
