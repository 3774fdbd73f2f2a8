import type { AuditEntry, CountedEntry } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';

type Who = NonNullable<AuditEntry['caller']>;
type Line = Readonly<Record<string, unknown>> & { readonly kind: 'read' | 'open' | 'omitted' };

interface OfKey {
  readonly who: Who | undefined;
  refused: number;
  readonly counted: Map<string, { readonly fields: Omit<CountedEntry, 'caller'>; count: number }>;
  uncounted: number;
}

/**
 * Lines for the refusals of one key; as many for its reads. Callers without a valid key share one
 * limit.
 */
const MOST_A_MINUTE = 60;
/** Keys per minute with a limit of their own; further keys share one. */
const MOST_KEYS = 1_000;
/** Lines for reads over all keys: the end of a minute never writes more than the queue holds. */
const MOST_COUNTED = 2_000;
const MINUTE_MS = 60_000;

/**
 * The first 60 refusals of a key in a minute have a line each, and further ones are counted in one
 * line. So nobody can push others' actions out of the files.
 */
export class MinuteLines {
  readonly #clock: Clock;
  readonly #tell: (line: Line) => void;
  readonly #keys = new Map<string, OfKey>();
  #counted = 0;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, tell: (line: Line) => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  letIn(caller: AuditEntry['caller']): boolean {
    const key = this.#of(caller);
    key.refused += 1;
    return key.refused <= MOST_A_MINUTE;
  }

  count({ caller, ...fields }: CountedEntry): void {
    const key = this.#of(caller);
    const name = JSON.stringify(fields);
    const counted = key.counted.get(name);
    if (counted) {
      counted.count += 1;
    } else if (key.counted.size < MOST_A_MINUTE && this.#counted < MOST_COUNTED) {
      key.counted.set(name, { fields, count: 1 });
      this.#counted += 1;
    } else {
      key.uncounted += 1;
    }
  }

  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const keys = [...this.#keys.values()];
    this.#keys.clear();
    this.#counted = 0;
    for (const { who, refused, counted, uncounted } of keys) {
      for (const { fields, count } of counted.values()) this.#tell({ ...fields, ...who, count });
      const omitted = refused - MOST_A_MINUTE;
      if (omitted > 0)
        this.#tell({
          kind: 'omitted',
          ...who,
          count: omitted,
          why: who === undefined ? 'no good key' : 'refused',
        });
      if (uncounted > 0) this.#tell({ kind: 'omitted', ...who, count: uncounted, why: 'reads' });
    }
  }

  #of(caller: AuditEntry['caller']): OfKey {
    this.#cancel ??= this.#clock.at(this.#clock.now() + MINUTE_MS, () => {
      this.stop();
    });
    const id = caller?.keyId ?? '';
    const known =
      this.#keys.get(id) ?? (this.#keys.size < MOST_KEYS ? undefined : this.#keys.get(SHARED));
    if (known) return known;
    const isShared = this.#keys.size >= MOST_KEYS;
    const made: OfKey = {
      who: isShared || !caller ? undefined : whoOf(caller),
      refused: 0,
      counted: new Map(),
      uncounted: 0,
    };
    this.#keys.set(isShared ? SHARED : id, made);
    return made;
  }
}

const SHARED = ' ';

export const whoOf = ({
  namespace,
  team,
  user,
  role,
  keyId,
}: NonNullable<AuditEntry['caller']>) => ({ namespace, team, user, role, keyId });
