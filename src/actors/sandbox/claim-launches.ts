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

/**
 * `failed`: none of that image starts, for `reason`. `late`: it came to nothing, or to nothing in
 * time, which may be otherwise the next time; `reason` is what was last said of why it is not
 * ready. `stopping`: this daemon is.
 */
export type StartOutcome =
  | { readonly kind: 'ready' }
  | { readonly kind: 'stopping' }
  | { readonly kind: 'failed' | 'late'; readonly reason: string };

interface Awaited {
  readonly poolUid: string;
  /** Says what its start failed of; `isPassing`: which is not its own fault. */
  readonly failure?: { readonly reason: string; readonly isPassing: boolean };
}

/**
 * Instances that are launched for one claim each, with an image that their pool does not have. This
 * replica launches them, whoever leads the pool's shard: the request that waits is its own. Nobody
 * else is offered them; what no claim comes for is retired by who leads, at the moment that its
 * record says.
 */
export class ClaimLaunches {
  readonly #deps: ClaimLaunchesDeps;
  /** Those that are waited for. */
  readonly #awaited = new Map<string, Awaited>();
  #isStopping = false;

  constructor(deps: ClaimLaunchesDeps) {
    this.#deps = deps;
  }

  /** Whether none is waited for any more, nor to be begun. */
  get stopping(): boolean {
    return this.#isStopping;
  }

  /** Counts those of the pool that are waited for here and may come to run, and do not yet. */
  underWay(poolUid: string): number {
    const { supervisor } = this.#deps;
    let count = 0;
    for (const [id, awaited] of this.#awaited)
      if (awaited.poolUid === poolUid && supervisor.sandbox(id)?.state !== 'running') count += 1;
    return count;
  }

  /** Begins to launch one; to be given up unless it is claimed. */
  begin(pool: PoolRecord, image: string, claimBy: number): InstanceId {
    const { clock, newId, launch } = this.#deps;
    const [id, now] = [newId(), clock.now()];
    this.#awaited.set(id, { poolUid: pool.uid });
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
    if (isReady(end)) return { kind: 'ready' };
    if (this.#isStopping) return { kind: 'stopping' };
    const failure = this.#awaited.get(id)?.failure;
    const isLate = failure ? failure.isPassing : !isHinderedForGood(end);
    return {
      kind: isLate || end?.context.end?.reason === 'start-timeout' ? 'late' : 'failed',
      reason: failure?.reason ?? end?.context.unready ?? '',
    };
  }

  /** Takes down why a start failed that somebody may wait for. */
  failed(id: string, reason: string, isPassing: boolean): void {
    const awaited = this.#awaited.get(id);
    if (awaited) this.#awaited.set(id, { ...awaited, failure: { reason, isPassing } });
  }

  /** Ends the waiting for those of a pool that ends. */
  endOf(poolUid: string): void {
    for (const [id, awaited] of this.#awaited)
      if (awaited.poolUid === poolUid) {
        this.failed(id, '', true);
        this.#deps.supervisor.wake(id);
      }
  }

  /** Ends all waiting, now and from now on. */
  stop(): void {
    this.#isStopping = true;
    for (const id of this.#awaited.keys()) this.#deps.supervisor.wake(id);
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
      this.#isStopping ||
      isReady(seen) ||
      this.#awaited.get(id)?.failure !== undefined ||
      (seen?.state !== 'starting' && seen?.state !== 'idle') ||
      isHinderedForGood(seen)
    );
  }
}

const isReady = (seen: SandboxSnapshot | undefined): boolean =>
  seen?.state === 'idle' && seen.context.availableAt !== undefined;

/** Tells whether only whoever chose the image can change what keeps it from its start. */
const isHinderedForGood = (seen: SandboxSnapshot | undefined): boolean => {
  const { hindrance, unready = '' } = seen?.context ?? {};
  return hindrance !== undefined && LASTING.has(hindrance) && !FIRST_PULL.test(unready);
};

const LASTING: ReadonlySet<string> = new Set(['ImageUnavailable', 'ContainerNotCreated']);

/** Begins what a kubelet says of one pull that failed, before it has tried again. */
const FIRST_PULL = /^(?:ErrImagePull|RegistryUnavailable)\b/;
