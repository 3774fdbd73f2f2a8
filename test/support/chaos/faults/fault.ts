/** Something that goes wrong and is mended again. `end` resolves once the victim is itself again; both may be called once, in order. */
export interface Fault {
  readonly kind: string;
  readonly victim: string;
  /** How long it goes on. */
  readonly lastsMs: number;
  /** Whether the other replicas can lead meanwhile; else nobody can until it is over. */
  readonly others: 'lead' | 'wait';
  /** Instances whose Pod or record it removes; known before it does. */
  readonly removes?: readonly string[];
  begin(): Promise<void>;
  end(): Promise<void>;
}
