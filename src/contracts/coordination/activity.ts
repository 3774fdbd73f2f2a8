import type { InstanceId } from '../../model/identifiers.ts';
import type { End } from '../../model/sandbox.ts';

export type Expiry =
  | { readonly expired: true }
  | { readonly expired: false; readonly activeAt: number };

/** When something last happened in a sandbox, and which ones have ended. */
export interface Activity {
  /**
   * Notes that something happens in it now. Known everywhere within a third of its idle timeout,
   * and within seconds. Costs nothing to call often. Never throws.
   */
  touch(id: InstanceId, idleTimeoutMs: number): void;
  /**
   * Notes that something goes on in it from now on, or no more, on this replica. While it does, it
   * expires nowhere. Where the replica dies, that ends within a minute. Never throws.
   */
  work(id: InstanceId, goesOn: boolean): void;
  /**
   * Whether nothing happened for `idleTimeoutMs`, decided at this moment. The claim counts as
   * activity, and so does the moment since which activity is known at all: where marks were lost it
   * is as if something had just happened.
   */
  expire(
    id: InstanceId,
    of: { readonly idleTimeoutMs: number; readonly claimedAt: number },
  ): Promise<Expiry>;
  /**
   * It ends for good: every replica knows within the call, for a minute; its activity is forgotten.
   */
  markEnded(id: InstanceId, end: End): Promise<void>;
  /**
   * The end that was marked within the last minute; undefined: none was. Rejects with `unavailable`
   * also where marks of that minute were lost.
   */
  ended(id: InstanceId): Promise<End | undefined>;
}
