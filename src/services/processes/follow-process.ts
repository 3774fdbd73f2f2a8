import { sandboxPermits } from '../../actors/sandbox/commands/sandbox-permits.ts';
import { within, type Clock } from '../../contracts/clock.ts';
import type { OutputRequest, StartedReading } from '../../contracts/processes.ts';
import { Deferred } from '../../lib/deferred.ts';
import { tooManyStreams } from '../../model/limit-refusals.ts';
import type { ProcessOutput } from '../../model/process.ts';
import { tenantKey, type Caller } from '../../model/tenant.ts';
import type { FollowProcessRequest, ProcessOperations } from './process-operations.ts';
import { foundProcess, processRefusalOf } from './process-refusals.ts';
import type { ProcessDeps } from './process-deps.ts';

const MOST_READERS = 64;
/** Each reader may hold 128 KiB of output in this process. */
const MOST_READERS_OF_TENANT = 512;
const POSITION_MS = 30_000;

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
    { sandboxes, driver, clock }: Pick<ProcessDeps, 'sandboxes' | 'driver' | 'clock'>,
    places: ReaderPlaces,
  ): ProcessOperations['followProcess'] =>
  async (caller, sandboxId, request) => {
    await sandboxes.require(caller, sandboxId);
    const { processId } = request;
    const fact = await foundProcess(driver, sandboxId, processId);
    const close = places.take(caller, sandboxId);
    const output = (part: Pick<OutputRequest, 'positioned'> & { readonly signal: AbortSignal }) =>
      worded(driver.processes.output(sandboxId, processId, { ...outputRequest(request), ...part }));
    if (request.from !== 'latest') return { fact, output: (signal) => output({ signal }), close };
    const begun = await beginReading(clock, output).catch((error: unknown) => {
      close();
      throw error;
    });
    const leave = (): void => {
      begun.leave();
      close();
    };
    return { fact, output: begun.output, close: leave };
  };

/**
 * Begins at once, so that the caller misses no output that its next request causes. Gives the
 * reading up to 30 s for its position, as long as any call to the driver takes.
 */
const beginReading = async (
  clock: Clock,
  read: (
    part: Pick<OutputRequest, 'positioned'> & { readonly signal: AbortSignal },
  ) => AsyncGenerator<ProcessOutput, void, undefined>,
): Promise<Pick<StartedReading, 'output' | 'leave'>> => {
  const stop = new AbortController();
  const positioned = new Deferred<void>();
  const pieces = read({ signal: stop.signal, positioned: () => positioned.resolve() });
  const first = pieces.next();
  first.then(
    () => positioned.resolve(),
    (error: unknown) => positioned.reject(error),
  );
  await within(clock, POSITION_MS, positioned.promise);
  const leave = (): void => stop.abort();
  async function* output(signal: AbortSignal): AsyncGenerator<ProcessOutput, void, undefined> {
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    try {
      for (let next = await first; next.done !== true; next = await pieces.next()) yield next.value;
    } finally {
      signal.removeEventListener('abort', leave);
      leave();
      pieces.return().catch(() => undefined);
    }
  }
  return { output, leave };
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
