/** Something that goes wrong and is mended again. `end` resolves once the victim is itself again; both may be called once, in order. */
export interface Fault {
  readonly kind: string;
  /** What it befalls; no other fault may have it meanwhile. */
  readonly victim: string;
  /** How long it goes on. */
  readonly lastsMs: number;
  /** Whether the other replicas can lead meanwhile; else nobody can until it is over. */
  readonly others: 'lead' | 'wait';
  /** The replica, by its index, that can't lead, or not do what a leader does, until it is over. */
  readonly hinders?: number;
  /** Instances whose Pod or record it removes; whole once `begin` has resolved. */
  readonly removes?: readonly string[];
  begin(): Promise<void>;
  end(): Promise<void>;
}
