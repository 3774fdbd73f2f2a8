import type { Supervisor } from '../actors/supervisor.ts';
import { InstanceGone, NotJoinable, OutcomeUnknown, type ProbeOutcome, type SandboxDriver } from '../contracts/sandbox-driver.ts';
import type { Operations } from './operations.ts';
import { findSandbox } from './sandbox-view.ts';

/**
 * Runs the readiness probes of the caller's sandbox, or of an unclaimed instance of the caller's (operation
 * `GET /sandboxes/{sandboxId}/is_ready`). An endpoint is ready where its own probe and the container's pass; without a probe
 * it counts as such. Is no activity.
 */
export const isReady = ({ supervisor, driver }: { readonly supervisor: Supervisor; readonly driver: SandboxDriver }): Operations['isReady'] => async (caller, sandboxId) => {
  const { status, context } = await findSandbox(supervisor, caller, sandboxId);
  const names = Object.keys(context.record?.endpoints ?? context.birth?.record.endpoints ?? {});
  const all = (ready: boolean, message: string) => ({ sandboxId, ready, endpoints: Object.fromEntries(names.map((name) => [name, { ready, message }])) });
  if (status !== 'Running' && status !== 'Idle') return all(false, `the sandbox is ${status}`);
  let outcomes: readonly ProbeOutcome[];
  try {
    outcomes = await driver.probe(sandboxId);
  } catch (error) {
    if (error instanceof InstanceGone || error instanceof NotJoinable || error instanceof OutcomeUnknown) return all(false, error.message);
    throw error;
  }
  const ofContainer = outcomes.find(({ endpoint, failure }) => endpoint === undefined && failure !== undefined)?.failure;
  const endpoints = names.map((name): [string, { readonly ready: boolean; readonly message: string }] => {
    const own = outcomes.find(({ endpoint }) => endpoint === name);
    const failure = own?.failure ?? (ofContainer === undefined ? undefined : `the container is not ready: ${ofContainer}`);
    return [name, { ready: failure === undefined, message: failure ?? (own ? 'its probe passes' : 'it has no probe of its own') }];
  });
  return { sandboxId, ready: outcomes.every(({ failure }) => failure === undefined), endpoints: Object.fromEntries(endpoints) };
};
