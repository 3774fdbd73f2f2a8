/** Lists why a manager takes a link not in; docs/metrics.md says what each means. */
const REASONS = [
  'not-joined',
  'unproved',
  'address',
  'version',
  'runs-twice',
  'not-opened',
] as const;
export type RefusedReason = (typeof REASONS)[number];

/** Says that the other end of a link was told why it is not taken in. */
export class LinkRefused extends Error {
  override readonly name = 'LinkRefused';
  readonly reason: RefusedReason;

  constructor(reason: RefusedReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** Counts links that were not taken in, by reason. */
export class RefusedLinks {
  readonly #counts = new Map<RefusedReason, number>(REASONS.map((reason) => [reason, 0]));

  /** Returns the reason; whatever is no LinkRefused kept the link from opening. */
  note(error: unknown): RefusedReason {
    const reason = error instanceof LinkRefused ? error.reason : 'not-opened';
    this.#counts.set(reason, (this.#counts.get(reason) ?? 0) + 1);
    return reason;
  }

  /** Every reason, those that never came too. */
  get counts(): ReadonlyMap<RefusedReason, number> {
    return this.#counts;
  }
}
