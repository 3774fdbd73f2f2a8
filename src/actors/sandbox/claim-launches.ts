import type { Clock } from '../../contracts/clock.ts';
import type { LaunchInput, SandboxEvent } from '../../machines/sandbox/events.ts';
import type { InstanceId } from '../../model/identifiers.ts';
import type { PoolRecord } from '../../model/pools/pool.ts';
import { orderWithImage } from './launch-order.ts';
import type { SandboxSnapshot } from './sandbox-snapshot.ts';

export interface ClaimLaunchesDeps {
  readonly clock: Clock;
  readonly newId: () => InstanceId;
  readonly launch: (input: LaunchInput) => void;
  readonly supervisor: {
    sandbox(id: string): SandboxSnapshot | undefined;
    send(id: string, event: SandboxEvent): boolean;
    until(
      id: string,
      look: (snapshot: SandboxSnapshot | undefined) => boolean,
      until: number,
    ): Promise<SandboxSnapshot | undefined>;
    wake(id: string): void;
  };
}

/** `late`: its time is over, and `reason` what was last said of why it is not ready. */
export type StartOutcome =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed' | 'late'; readonly reason: string };

/**
 * Instances that are launched for one claim each, with an image that their pool does not have. This
 * replica launches them, whoever leads the pool's shard: the request that waits is its own. Nobody
 * else is offered them; what no claim comes for is retired by who leads, at the moment that its
 * record says.
 */
export class ClaimLaunches {
  readonly #deps: ClaimLaunchesDeps;
  /** Those that are waited for, and what their starts failed of. */
  readonly #awaited = new Map<string, { failure?: string }>();

  constructor(deps: ClaimLaunchesDeps) {
    this.#deps = deps;
  }

  /** Begins to launch one; to be given up unless it is claimed. */
  begin(pool: PoolRecord, image: string, claimBy: number): InstanceId {
    const { clock, newId, launch } = this.#deps;
    const [id, now] = [newId(), clock.now()];
    this.#awaited.set(id, {});
    launch({ now, launchOrder: orderWithImage(pool, id, { image, now, claimBy }) });
    return id;
  }

  /**
   * Waits until it can be claimed, or never can. Rejects with the reason of `signal` once that
   * aborts.
   */
  async ready(
    id: InstanceId,
    claimBy: number,
    signal: AbortSignal | undefined,
  ): Promise<StartOutcome> {
    const { supervisor } = this.#deps;
    const wake = (): void => supervisor.wake(id);
    signal?.addEventListener('abort', wake);
    const end = await supervisor
      .until(id, (seen) => signal?.aborted === true || this.#isDecided(id, seen), claimBy)
      .finally(() => signal?.removeEventListener('abort', wake));
    if (signal?.aborted) throw signal.reason;
    const failure = this.#awaited.get(id)?.failure;
    if (isReady(end)) return { kind: 'ready' };
    const reason = failure ?? end?.context.unready ?? '';
    const isLate = !this.#isDecided(id, end) || end?.context.end?.reason === 'start-timeout';
    return { kind: isLate ? 'late' : 'failed', reason };
  }

  /** Takes down why a start failed that somebody may wait for. */
  failed(id: string, failure: string): void {
    if (this.#awaited.has(id)) this.#awaited.set(id, { failure });
  }

  /** Nobody waits for it any more: it is retired, unless a claim of it was written, or may be. */
  end(id: InstanceId): void {
    const { supervisor, clock } = this.#deps;
    this.#awaited.delete(id);
    const { state } = supervisor.sandbox(id) ?? {};
    if (state === 'starting' || state === 'idle')
      supervisor.send(id, { type: 'END', reason: 'claim-failed', now: clock.now() });
  }

  #isDecided(id: string, seen: SandboxSnapshot | undefined): boolean {
    return (
      isReady(seen) ||
      this.#awaited.get(id)?.failure !== undefined ||
      (seen?.state !== 'starting' && seen?.state !== 'idle') ||
      (seen.context.hindrance !== undefined && LASTING.has(seen.context.hindrance))
    );
  }
}

const isReady = (seen: SandboxSnapshot | undefined): boolean =>
  seen?.state === 'idle' && seen.context.availableAt !== undefined;

/** Names what only whoever chose the image can change. */
const LASTING: ReadonlySet<string> = new Set(['ImageUnavailable', 'ContainerNotCreated']);
