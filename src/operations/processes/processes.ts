import { createHash } from 'node:crypto';
import type { ProcessOrder } from '../../contracts/processes.ts';
import { inputNotTaken } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import { callsUnderWay, type CallsUnderWay } from './calls-under-way.ts';
import { followProcess } from './follow-process.ts';
import type { ProcessInput, ProcessOperations, StartProcessRequest } from './process-operations.ts';
import { asked, foundProcess } from './process-refusals.ts';
import type { ProcessDeps } from './process-deps.ts';

/** Milliseconds that input waits for a process that reads none. */
const INPUT_PATIENCE_MS = 20_000;

/**
 * Starts processes in the caller's running sandbox, shows and signals them, gives them input and
 * removes them (operations under `/sandboxes/{sandboxId}/processes`).
 */
export const processOperations = (
  deps: ProcessDeps,
  calls: CallsUnderWay = callsUnderWay(),
): ProcessOperations => ({
  followProcess: followProcess(deps),
  startProcess: startProcess(deps, calls),
  listProcesses: async (caller, sandboxId) => {
    await deps.sandboxes.require(caller, sandboxId);
    return await asked(deps.driver.processes.list(sandboxId));
  },
  getProcess: async (caller, sandboxId, processId) => {
    await deps.sandboxes.require(caller, sandboxId);
    return await foundProcess(deps.driver, sandboxId, processId);
  },
  writeToProcess: writeToProcess(deps, calls),
  signalProcess: async (caller, sandboxId, { processId, name }) => {
    await deps.sandboxes.require(caller, sandboxId);
    deps.sandboxes.active(sandboxId);
    await asked(deps.driver.processes.signal(sandboxId, processId, name));
    return await foundProcess(deps.driver, sandboxId, processId);
  },
  deleteProcess: async (caller, sandboxId, processId) => {
    await deps.sandboxes.require(caller, sandboxId);
    const fact = await foundProcess(deps.driver, sandboxId, processId);
    await asked(deps.driver.processes.remove(sandboxId, processId));
    return fact;
  },
});

/** Resolves once the program runs (operation `POST /sandboxes/{sandboxId}/processes`). */
const startProcess =
  (deps: ProcessDeps, calls: CallsUnderWay): ProcessOperations['startProcess'] =>
  async (caller, sandboxId, request) => {
    const sandbox = await deps.sandboxes.require(caller, sandboxId, request.container);
    const env = sandbox.envOver(request.env);
    deps.sandboxes.active(sandboxId);
    const order = orderOf(deps, caller, { sandboxId, request: { ...request, env } });
    return await calls({ tenant: order.tenant, sandboxId }, () =>
      asked(deps.driver.processes.start(sandboxId, order)),
    );
  };

const orderOf = (
  { newId }: ProcessDeps,
  caller: Caller,
  { sandboxId, request }: { readonly sandboxId: string; readonly request: StartProcessRequest },
): ProcessOrder => {
  const { argv, cwd, env, tty, stdin, timeoutMs, tag, container, key } = request;
  const tenant = tenantKey(caller);
  return {
    processId: key === undefined ? newId() : idOfKey(`${tenant} ${sandboxId} ${key}`),
    tenant,
    argv,
    stdin,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env }),
    ...(tty === undefined ? {} : { tty }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(tag === undefined ? {} : { tag }),
    ...(container === undefined ? {} : { container }),
  };
};

/** Under one key a client means one process, however often it asks. */
const idOfKey = (key: string): string =>
  createHash('sha256').update(key).digest('hex').slice(0, 32);

/** Input is taken whole or not at all (operation `POST …/processes/{processId}/stdin`). */
const writeToProcess =
  (deps: ProcessDeps, calls: CallsUnderWay): ProcessOperations['writeToProcess'] =>
  async (caller, sandboxId, input) => {
    await deps.sandboxes.require(caller, sandboxId);
    deps.sandboxes.active(sandboxId);
    await calls({ tenant: tenantKey(caller), sandboxId }, () => handOver(deps, sandboxId, input));
    return await foundProcess(deps.driver, sandboxId, input.processId);
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
      await asked(processes.write(sandboxId, processId, bytes, controller.signal));
    if (last) await asked(processes.closeInput(sandboxId, processId));
  } finally {
    callOff();
  }
};
