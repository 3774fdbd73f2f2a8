import { createHash } from 'node:crypto';
import type { ProcessOrder } from '../../contracts/processes.ts';
import type { ProcessFact, ProcessOutput } from '../../model/process.ts';
import { Refusal } from '../../model/refusals.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { CallsUnderWay } from './calls-under-way.ts';
import { outputRequest, worded, type ReaderPlaces } from './follow-process.ts';
import type { ProcessDeps } from './process-deps.ts';
import type {
  ProcessFollow,
  ProcessOperations,
  StartProcessRequest,
} from './process-operations.ts';
import { asked } from './process-refusals.ts';

/** Resolves once the program runs (operation `POST /sandboxes/{sandboxId}/processes`). */
export const startProcess =
  (deps: ProcessDeps, calls: CallsUnderWay): ProcessOperations['startProcess'] =>
  async (caller, sandboxId, request) => {
    const order = await orderFor(deps, caller, { sandboxId, request });
    return await calls({ tenant: order.tenant, sandboxId }, () =>
      asked(deps.driver.processes.start(sandboxId, order)),
    );
  };

export const runProcess =
  (
    deps: ProcessDeps,
    calls: CallsUnderWay,
    places: ReaderPlaces,
  ): ProcessOperations['runProcess'] =>
  async (caller, sandboxId, request) => {
    const order = await orderFor(deps, caller, { sandboxId, request });
    const { processes } = deps.driver;
    const place = placeOf(places, caller, sandboxId);
    const within = { tenant: order.tenant, sandboxId };
    if (place instanceof Refusal) {
      const fact = await calls(within, () => asked(processes.start(sandboxId, order)));
      return unreadable(fact, place);
    }
    try {
      const { fact, output, leave } = await calls(within, () =>
        asked(processes.run(sandboxId, order, outputRequest(request))),
      );
      const close = (): void => {
        leave();
        place();
      };
      return { fact, output: (signal) => worded(output(signal)), close };
    } catch (error) {
      place();
      throw error;
    }
  };

const placeOf = (
  places: ReaderPlaces,
  caller: Caller,
  sandboxId: string,
): Refusal | (() => void) => {
  try {
    return places.take(caller, sandboxId);
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
};

/** The process runs: a caller who can't read it gets its id, and then the error. */
const unreadable = (fact: ProcessFact, why: Refusal): ProcessFollow => ({
  fact,
  output: () => refusing(why),
  close: () => {},
});

// oxlint-disable-next-line eslint/require-yield -- what it says is that there is nothing
async function* refusing(why: Refusal): AsyncGenerator<ProcessOutput, void, undefined> {
  throw why;
}

const orderFor = async (
  { sandboxes, newId }: ProcessDeps,
  caller: Caller,
  { sandboxId, request }: { readonly sandboxId: string; readonly request: StartProcessRequest },
): Promise<ProcessOrder> => {
  const { argv, cwd, tty, stdin, timeoutMs, tag, container, key } = request;
  const sandbox = await sandboxes.require(caller, sandboxId, container);
  const env = sandbox.envOver(request.env);
  sandboxes.active(sandboxId);
  const tenant = tenantKey(caller);
  return {
    processId: key === undefined ? newId() : idOfKey(`${tenant} ${sandboxId} ${key}`),
    tenant,
    argv,
    stdin,
    cwd,
    env,
    tty,
    timeoutMs,
    tag,
    container,
  };
};

/** However often a client repeats the request. */
const idOfKey = (key: string): string =>
  createHash('sha256').update(key).digest('hex').slice(0, 32);
