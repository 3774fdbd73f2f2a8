import { created, ok, route, secret, type Answer, type Route } from '../../http/router/route.ts';
import { sandboxNotFound } from '../../model/refusals.ts';
import type { Caller } from '../../model/tenant.ts';
import type { Operations } from '../../operations/operations.ts';
import type { SandboxView } from '../../operations/views.ts';
import { createSandbox, type CreateTerms } from './create-sandbox.ts';
import { presentDetail, presentSandbox, type ShowTerms } from './presenter.ts';
import { NewSandbox, SandboxDetail, SandboxPath, ShownSandbox } from './schema.ts';

export interface ControlDeps {
  readonly operations: Operations;
  readonly terms: CreateTerms & {
    /** Undefined: the host that a request names. */
    readonly domain: string | undefined;
  };
}

/** Seconds that a sandbox lives where its creation does not say, by the version of the path. */
const LIFETIME = { v1: 15, v2: 300 };

/**
 * The control API. Each row is named by the operation that it comes to: so the policy, the audit
 * and the limits see one operation, at whichever port it is asked for.
 */
export const controlRoutes = (deps: ControlDeps): readonly Route[] => [
  creation(deps, '/sandboxes', LIFETIME.v1),
  creation(deps, '/v2/sandboxes', LIFETIME.v2),
  route({
    operationId: 'getSandbox',
    method: 'GET',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'Get a sandbox',
    params: SandboxPath,
    answers: { 200: SandboxDetail },
    refusals: ['SANDBOX_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params, base }) => {
      const view = await requireLive(deps, caller, params.sandboxId);
      return secret(ok(presentDetail(view, showTerms(deps, caller, base()))));
    },
  }),
  route({
    operationId: 'deleteSandbox',
    method: 'DELETE',
    path: '/sandboxes/{sandboxId}',
    access: 'tenant',
    summary: 'End a sandbox',
    params: SandboxPath,
    answers: { 204: SandboxDetail },
    refusals: ['SANDBOX_NOT_FOUND', 'CONFLICT', 'UNAVAILABLE'],
    repeatable: true,
    handle: async ({ caller, params }) => {
      await requireLive(deps, caller, params.sandboxId);
      await deps.operations.deleteSandbox(caller, params.sandboxId);
      return DONE;
    },
  }),
];

const DONE: Answer = { status: 204, body: {} };

const creation = ({ operations, terms }: ControlDeps, path: string, lifetime: number): Route =>
  route({
    operationId: 'claimSandbox',
    method: 'POST',
    path,
    access: 'tenant',
    summary: 'Claim an idle instance of a pool',
    body: NewSandbox,
    answers: { 201: ShownSandbox },
    refusals: ['POOL_NOT_FOUND', 'POOL_EXHAUSTED', 'QUOTA_EXCEEDED', 'UNAVAILABLE'],
    opensItself: true,
    pendingOutcome: (mark) => operations.pendingClaim(mark),
    waits: () => terms.waitMs > 0,
    handle: async ({ caller, body, opening, step, signal, base }) => {
      const sandbox = await createSandbox({ operations, terms }, caller, {
        body,
        lifetimeSeconds: lifetime,
        more: { ...(opening ? { opening } : {}), ...(step ? { step } : {}) },
        signal: signal(),
      });
      const shown = showTerms({ operations, terms }, caller, base());
      return secret(created(presentSandbox(sandbox, shown)));
    },
  });

/** One that ends already is as good as gone. */
const requireLive = async (
  { operations }: ControlDeps,
  caller: Caller,
  sandboxId: string,
): Promise<SandboxView> => {
  const view = await operations.getSandbox(caller, sandboxId);
  if (view.status !== 'Running') throw sandboxNotFound();
  return view;
};

/** `base`: as the client sees this daemon. */
const showTerms = (
  { operations, terms }: ControlDeps,
  caller: Caller,
  base: string,
): ShowTerms => ({
  operations,
  caller,
  domain: terms.domain ?? new URL(base).host.replace(/^api\./, ''),
});
