import type { Supervisor } from '../actors/supervisor.ts';
import type { Clock } from '../contracts/clock.ts';
import type { Operations } from './operations.ts';
import { findSandbox, viewOf } from './sandbox-view.ts';

/** One live sandbox (operation `GET /sandboxes/{sandboxId}`); a finished one is not found. */
export const getSandbox = (deps: { readonly supervisor: Supervisor; readonly clock: Clock }): Operations['getSandbox'] =>
  async (caller, sandboxId) => viewOf(findSandbox(deps.supervisor, caller, sandboxId, { adminsToo: true }), deps.clock.now());
