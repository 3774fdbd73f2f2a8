/** `begin` and `end` are called once, in order. `end` resolves once the victim has recovered. */
export interface Fault {
  readonly kind: string;
  /** No other fault may have the same victim. */
  readonly victim: string;
  readonly also?: readonly string[];
  /** No other fault may run at the same time. */
  readonly isAlone?: boolean;
  readonly lastsMs: number;
  /** Whether other replicas can lead in the meantime. */
  readonly others: 'lead' | 'wait';
  /** Index of the replica that can't act as a leader until it is over. */
  readonly hinders?: number;
  /** Instances whose Pod or record it removes; complete once `begin` has resolved. */
  readonly removes?: readonly string[];
  /** Instances whose labels it changes; likewise complete. */
  readonly edits?: readonly string[];
  /** Namespace that it deletes with its content. */
  readonly namespace?: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}
