/** For debugging. */
export interface MirrorReport {
  readonly name: string;
  /** Absent if the mirror covers all namespaces. */
  readonly namespace?: string;
  readonly objects: number;
  /** The mirror includes all changes up to this revision; empty before the first list. */
  readonly revision: string;
  readonly silentMs?: number;
  /** Absent if the mirror is reliable. */
  readonly stale?: string;
  readonly lists: number;
  readonly relists: number;
  readonly restarts: number;
  readonly events: number;
  readonly mishaps: number;
}
