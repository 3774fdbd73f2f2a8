/**
 * Something that goes wrong and is mended again. `end` resolves once the victim is itself again;
 * both may be called once, in order.
 */
export interface Fault {
  readonly kind: string;
  /** What it befalls; no other fault may have it meanwhile. */
  readonly victim: string;
  /** What else it befalls. */
  readonly also?: readonly string[];
  /** No other fault may be there meanwhile. */
  readonly isAlone?: boolean;
  /** How long it goes on. */
  readonly lastsMs: number;
  /** Whether the other replicas can lead meanwhile; else nobody can until it is over. */
  readonly others: 'lead' | 'wait';
  /** The replica, by its index, that can't lead, or not do what a leader does, until it is over. */
  readonly hinders?: number;
  /** Instances whose Pod or record it removes; whole once `begin` has resolved. */
  readonly removes?: readonly string[];
  /** Instances whose labels it changes; likewise. */
  readonly edits?: readonly string[];
  /** The namespace that it deletes with all that is in it. */
  readonly namespace?: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}
