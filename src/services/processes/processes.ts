import { inputNotTaken } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import { callsUnderWay, type CallsUnderWay } from './calls-under-way.ts';
import { followProcess, ReaderPlaces } from './follow-process.ts';
import type { ProcessInput, ProcessOperations } from './process-operations.ts';
import { asked, foundProcess } from './process-refusals.ts';
import type { ProcessDeps } from './process-deps.ts';
import { runProcess, startProcess } from './start-process.ts';

/** In ms, for a process that does not read. */
const INPUT_PATIENCE_MS = 20_000;

/** In the caller's running sandbox (`/sandboxes/{sandboxId}/processes`). */
export const processOperations = (
  deps: ProcessDeps,
  calls: CallsUnderWay = callsUnderWay(),
  places = new ReaderPlaces(deps.sandboxes),
): ProcessOperations => ({
  giveInput: giveInput(deps, calls),
  followProcess: followProcess(deps, places),
  startProcess: startProcess(deps, calls),
  runProcess: runProcess(deps, calls, places),
  listProcesses: async (caller, sandboxId) => {
    await deps.sandboxes.require(caller, sandboxId);
    return await asked(deps.driver.processes.list(sandboxId));
  },
  getProcess: async (caller, sandboxId, processId) => {
    await deps.sandboxes.require(caller, sandboxId);
    return await foundProcess(deps.driver, sandboxId, processId);
  },
  writeToProcess: async (caller, sandboxId, input) => {
    await giveInput(deps, calls)(caller, sandboxId, input);
    return await foundProcess(deps.driver, sandboxId, input.processId);
  },
  signalProcess: async (caller, sandboxId, { processId, name }) => {
    await deps.sandboxes.require(caller, sandboxId);
    deps.sandboxes.active(sandboxId);
    await asked(deps.driver.processes.signal(sandboxId, processId, name));
    return await foundProcess(deps.driver, sandboxId, processId);
  },
  resizeProcess: async (caller, sandboxId, { processId, cols, rows }) => {
    await deps.sandboxes.require(caller, sandboxId);
    deps.sandboxes.active(sandboxId);
    await asked(deps.driver.processes.resize(sandboxId, processId, { cols, rows }));
    return await foundProcess(deps.driver, sandboxId, processId);
  },
  deleteProcess: async (caller, sandboxId, processId) => {
    await deps.sandboxes.require(caller, sandboxId);
    const fact = await foundProcess(deps.driver, sandboxId, processId);
    await asked(deps.driver.processes.remove(sandboxId, processId));
    return fact;
  },
});

/** Whole or not at all (operation `POST …/processes/{processId}/stdin`). */
const giveInput =
  (deps: ProcessDeps, calls: CallsUnderWay): ProcessOperations['giveInput'] =>
  async (caller, sandboxId, input) => {
    await deps.sandboxes.require(caller, sandboxId);
    deps.sandboxes.active(sandboxId);
    await calls({ tenant: tenantKey(caller), sandboxId }, () => handOver(deps, sandboxId, input));
  };

const handOver = async (
  { clock, driver: { processes } }: ProcessDeps,
  sandboxId: string,
  { processId, bytes, last }: ProcessInput,
): Promise<void> => {
  const controller = new AbortController();
  const callOff = clock.at(clock.now() + INPUT_PATIENCE_MS, () =>
    controller.abort(inputNotTaken()),
  );
  try {
    if (bytes.length > 0)
      await asked(processes.write(sandboxId, processId, { bytes, signal: controller.signal }));
    if (last) await asked(processes.closeInput(sandboxId, processId));
  } finally {
    callOff();
  }
};
