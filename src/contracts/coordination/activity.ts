import type { InstanceId } from '../../model/identifiers.ts';
import type { End } from '../../model/sandbox.ts';

export type Expiry =
  | { readonly expired: true }
  | { readonly expired: false; readonly activeAt: number };

export interface Activity {
  /**
   * All replicas see it within seconds, and within a third of the idle timeout. Cheap to call
   * often. Never throws.
   */
  touch(id: InstanceId, idleTimeoutMs: number): void;
  /**
   * A sandbox with work in progress does not expire on any replica. If the replica dies, its work
   * ends within a minute. Never throws.
   */
  work(id: InstanceId, goesOn: boolean): void;
  /**
   * Decides atomically whether the sandbox was idle for `idleTimeoutMs`. The claim counts as
   * activity. After a loss of data, sandboxes count as active just now.
   */
  expire(
    id: InstanceId,
    of: { readonly idleTimeoutMs: number; readonly claimedAt: number },
  ): Promise<Expiry>;
  /**
   * Every replica sees the end before the call resolves, for a minute. Forgets the sandbox's
   * activity.
   */
  markEnded(id: InstanceId, end: End): Promise<void>;
  /**
   * The end recorded within the last minute. Rejects with `unavailable` also if data of that minute
   * was lost.
   */
  ended(id: InstanceId): Promise<End | undefined>;
}
