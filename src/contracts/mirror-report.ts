/** State of a mirror of one kind of stored objects, for debugging. */
export interface MirrorReport {
  readonly name: string;
  /** Only mirrored namespace; absent if the mirror covers all. */
  readonly namespace?: string;
  readonly objects: number;
  /** The mirror includes all changes up to this revision; empty before the first list. */
  readonly revision: string;
  /** Time since the last message in ms; absent before the first. */
  readonly silentMs?: number;
  /** Reason why the mirror is unreliable; absent if it is reliable. */
  readonly stale?: string;
  readonly lists: number;
  readonly relists: number;
  readonly restarts: number;
  readonly events: number;
  readonly mishaps: number;
}
