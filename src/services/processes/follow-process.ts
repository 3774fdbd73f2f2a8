import { sandboxPermits } from '../../actors/sandbox/commands/sandbox-permits.ts';
import type { OutputRequest } from '../../contracts/processes.ts';
import { tooManyStreams } from '../../model/limit-refusals.ts';
import type { ProcessOutput } from '../../model/process.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { FollowProcessRequest, ProcessOperations } from './process-operations.ts';
import { foundProcess, processRefusalOf } from './process-refusals.ts';
import type { ProcessDeps } from './process-deps.ts';

const MOST_READERS = 64;
/** Each reader may hold 128 KiB of output in this process. */
const MOST_READERS_OF_TENANT = 512;

/** At most 64 of one sandbox, and 512 of one tenant. */
export class ReaderPlaces {
  readonly #sandboxes: ProcessDeps['sandboxes'];
  readonly #permit = sandboxPermits(
    { sandbox: MOST_READERS, tenant: MOST_READERS_OF_TENANT },
    tooManyStreams,
  );

  constructor(sandboxes: ProcessDeps['sandboxes']) {
    this.#sandboxes = sandboxes;
  }

  /**
   * Also keeps the sandbox from being idle. Returns an idempotent release. Throws a Refusal at the
   * limit.
   */
  take(caller: Caller, sandboxId: string): () => void {
    const release = this.#permit(sandboxId, tenantKey(caller));
    const rest = this.#sandboxes.busy(sandboxId);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      release();
      rest();
    };
  }
}

/**
 * Past and further output (operation `GET …/processes/{processId}/output`). A reader that leaves
 * ends nothing.
 */
export const followProcess =
  (
    { sandboxes, driver }: Pick<ProcessDeps, 'sandboxes' | 'driver'>,
    places: ReaderPlaces,
  ): ProcessOperations['followProcess'] =>
  async (caller, sandboxId, request) => {
    await sandboxes.require(caller, sandboxId);
    const { processId } = request;
    const fact = await foundProcess(driver, sandboxId, processId);
    const close = places.take(caller, sandboxId);
    const output = (signal: AbortSignal) =>
      driver.processes.output(sandboxId, processId, { ...outputRequest(request), signal });
    return { fact, output: (signal) => worded(output(signal)), close };
  };

export const outputRequest = ({
  from,
  pace,
}: Omit<FollowProcessRequest, 'processId'>): OutputRequest => ({ pace, from });

export async function* worded(
  output: AsyncIterable<ProcessOutput>,
): AsyncGenerator<ProcessOutput, void, undefined> {
  try {
    yield* output;
  } catch (error) {
    throw processRefusalOf(error);
  }
}
