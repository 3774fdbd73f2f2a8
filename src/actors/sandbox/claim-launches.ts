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
 * `failed`: no instance with that image starts. `late`: a retry may succeed; `reason` is the last
 * reported cause. `stopping`: the daemon stops.
 */
export type StartOutcome =
  | { readonly kind: 'ready' }
  | { readonly kind: 'stopping' }
  | { readonly kind: 'failed' | 'late'; readonly reason: string };

interface Awaited {
  readonly poolUid: string;
  readonly failure?: { readonly reason: string; readonly isPassing: boolean };
}

/**
 * Launched by the replica of the request, whoever leads the shard. No other claim gets them. The
 * leader retires an unclaimed one at `claimBy`.
 */
export class ClaimLaunches {
  readonly #deps: ClaimLaunchesDeps;
  readonly #awaited = new Map<string, Awaited>();
  #isStopping = false;

  constructor(deps: ClaimLaunchesDeps) {
    this.#deps = deps;
  }

  get stopping(): boolean {
    return this.#isStopping;
  }

  underWay(poolUid: string): number {
    const { supervisor } = this.#deps;
    let count = 0;
    for (const [id, awaited] of this.#awaited)
      if (awaited.poolUid === poolUid && supervisor.sandbox(id)?.state !== 'running') count += 1;
    return count;
  }

  /** The caller must call `end`. */
  begin(pool: PoolRecord, image: string, claimBy: number): InstanceId {
    const { clock, newId, launch } = this.#deps;
    const [id, now] = [newId(), clock.now()];
    this.#awaited.set(id, { poolUid: pool.uid });
    launch({ now, launchOrder: orderWithImage(pool, id, { image, now, claimBy }) });
    return id;
  }

  /** Rejects with the reason of `signal` if it aborts. */
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

  failed(id: string, reason: string, isPassing: boolean): void {
    const awaited = this.#awaited.get(id);
    if (awaited) this.#awaited.set(id, { ...awaited, failure: { reason, isPassing } });
  }

  endOf(poolUid: string): void {
    for (const [id, awaited] of this.#awaited)
      if (awaited.poolUid === poolUid) {
        this.failed(id, '', true);
        this.#deps.supervisor.wake(id);
      }
  }

  stop(): void {
    this.#isStopping = true;
    for (const id of this.#awaited.keys()) this.#deps.supervisor.wake(id);
  }

  /** Retires the instance unless its claim was written, or may have been. */
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

/** Whether only a different image can fix the start. */
const isHinderedForGood = (seen: SandboxSnapshot | undefined): boolean => {
  const { hindrance, unready = '' } = seen?.context ?? {};
  return hindrance !== undefined && LASTING.has(hindrance) && !FIRST_PULL.test(unready);
};

const LASTING: ReadonlySet<string> = new Set(['ImageUnavailable', 'ContainerNotCreated']);

/** Start of a kubelet's message about a first failed pull, which it will retry. */
const FIRST_PULL = /^(?:ErrImagePull|RegistryUnavailable)\b/;
