/** `begin` and `end` are called once, in order. `end` resolves once the victim has recovered. */
export interface Fault {
  readonly kind: string;
  /** No other fault may have the same victim. */
  readonly victim: string;
  readonly also?: readonly string[];
  readonly isAlone?: boolean;
  readonly lastsMs: number;
  /** Whether others can lead in the meantime. */
  readonly others: 'lead' | 'wait';
  /** Index of the replica that can't act as a leader until it is over. */
  readonly hinders?: number;
  /** Complete once `begin` has resolved. */
  readonly removes?: readonly string[];
  /** Complete once `begin` has resolved. */
  readonly edits?: readonly string[];
  readonly namespace?: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}
