import type { Supervisor } from '../supervisor.ts';
import { within, type Clock } from '../../../contracts/clock.ts';
import {
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
  type ProbeOutcome,
  type SandboxDriver,
} from '../../../contracts/sandbox-driver.ts';
import type { SandboxOperations } from './sandbox-operations.ts';
import { findSandbox } from './find-sandbox.ts';

/** A probe runs for at most 30 s, after its wait for a slot. */
const DEADLINE_MS = 35_000;

export interface IsReadyDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly clock: Clock;
}

/**
 * An endpoint is ready if its probe and the container's pass, or don't exist (operation `GET
 * /sandboxes/{sandboxId}/is_ready`). Does not count as activity.
 */
export const isReady =
  ({ supervisor, driver, clock }: IsReadyDeps): SandboxOperations['isReady'] =>
  async (caller, sandboxId) => {
    const { status, context } = await findSandbox(supervisor, caller, { sandboxId });
    const names = Object.keys(
      context.record?.endpoints ?? context.launchOrder?.record.endpoints ?? {},
    );
    const all = (ready: boolean, message: string) => ({
      sandboxId,
      ready,
      endpoints: Object.fromEntries(names.map((name) => [name, { ready, message }])),
    });
    if (status !== 'Running' && status !== 'Idle') return all(false, `the sandbox is ${status}`);
    if (context.record?.claim?.pausedAt !== undefined) return all(false, 'the sandbox is paused');
    let outcomes: readonly ProbeOutcome[];
    try {
      const told = await within(clock, DEADLINE_MS, driver.probe(sandboxId));
      if (!told) return all(false, `its probes did not end within ${DEADLINE_MS / 1_000} s`);
      outcomes = told;
    } catch (error) {
      if (
        error instanceof InstanceGone ||
        error instanceof NotJoinable ||
        error instanceof OutcomeUnknown
      )
        return all(false, error.message);
      throw error;
    }
    const ofContainer = outcomes.find(
      ({ endpoint, failure }) => endpoint === undefined && failure !== undefined,
    )?.failure;
    const endpoints = names.map(
      (name): [string, { readonly ready: boolean; readonly message: string }] => {
        const own = outcomes.find(({ endpoint }) => endpoint === name);
        const failure =
          own?.failure ??
          (ofContainer === undefined ? undefined : `the container is not ready: ${ofContainer}`);
        return [
          name,
          {
            ready: failure === undefined,
            message: failure ?? (own ? 'its probe passes' : 'it has no probe of its own'),
          },
        ];
      },
    );
    return {
      sandboxId,
      ready: outcomes.every(({ failure }) => failure === undefined),
      endpoints: Object.fromEntries(endpoints),
    };
  };
