import { KeyedSemaphore } from '../../lib/keyed-semaphore.ts';
import { tooManyStreams } from '../../model/limit-refusals.ts';
import type { ProcessOutput } from '../../model/process.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { ProcessOperations } from './process-operations.ts';
import { foundProcess, processRefusalOf } from './process-refusals.ts';
import type { ProcessDeps } from './process-deps.ts';

const MOST_READERS = 64;
/** Readers of one tenant's processes: each may hold 128 KiB of output in this process. */
const MOST_READERS_OF_TENANT = 512;

/**
 * Reads what a process printed and prints (operation `GET …/processes/{processId}/output`). At most
 * 64 at a time read processes of one sandbox, and 512 are one tenant's. Whoever leaves ends
 * nothing.
 */
export const followProcess = (
  deps: Pick<ProcessDeps, 'sandboxes' | 'driver'>,
): ProcessOperations['followProcess'] => {
  const readers = new KeyedSemaphore(MOST_READERS);
  const readersOfTenants = new KeyedSemaphore(MOST_READERS_OF_TENANT);
  return async (caller, sandboxId, { processId, from, pace }) => {
    const { sandboxes, driver } = deps;
    await sandboxes.require(caller, sandboxId);
    const fact = await foundProcess(driver, sandboxId, processId);
    const tenant = tenantKey(caller);
    if (!readers.acquire(sandboxId)) throw tooManyStreams('the sandbox has', MOST_READERS);
    if (!readersOfTenants.acquire(tenant)) {
      readers.release(sandboxId);
      throw tooManyStreams('you have', MOST_READERS_OF_TENANT);
    }
    const rest = sandboxes.busy(sandboxId);
    let open = true;
    return {
      fact,
      output: (signal) =>
        worded(
          driver.processes.output(
            sandboxId,
            processId,
            { pace, ...(from === undefined ? {} : { from }) },
            signal,
          ),
        ),
      close: () => {
        if (!open) return;
        open = false;
        readers.release(sandboxId);
        readersOfTenants.release(tenant);
        rest();
      },
    };
  };
};

async function* worded(
  output: AsyncIterable<ProcessOutput>,
): AsyncGenerator<ProcessOutput, void, undefined> {
  try {
    yield* output;
  } catch (error) {
    throw processRefusalOf(error);
  }
}
