/** How a mirror of one kind of stored objects stands, for whoever looks inside. */
export interface MirrorReport {
  readonly name: string;
  /** The only one that it mirrors; absent: it mirrors all. */
  readonly namespace?: string;
  readonly objects: number;
  /** All changes up to it were taken in; empty before the first list. */
  readonly revision: string;
  /** Since something was last heard, in milliseconds; absent: nothing ever was. */
  readonly silentMs?: number;
  /** Why it can't be relied on; absent where it can. */
  readonly stale?: string;
  readonly lists: number;
  readonly relists: number;
  readonly restarts: number;
  readonly events: number;
  readonly mishaps: number;
}
