import { randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import {
  MOST_PROMOTED,
  type PromotedKey,
  type PromotedKeyCopies,
  type PromotedKeyVisit,
} from '../../contracts/fleet/promoted-keys.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordExists } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { PromotedTrust } from '../../services/keys/promoted-trust.ts';
import { type RecordOrigin, ReplicatedRecords, type WantedRecord } from './replicated-records.ts';
import { AT_ONCE, inParts, type Tried } from './store-retries.ts';
import { promotedHashOf } from '../../services/keys/mint-api-key.ts';

export interface PromotedCopiesDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly trust: PromotedTrust;
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly log: Log;
  readonly managers: number;
  /** Copies stay valid this long after their manager last confirmed them. */
  readonly aloneMs: number;
  readonly namespaceOf: (team: string) => string;
}

interface ToldKey {
  readonly key: PromotedKey;
  /** How far this cluster's clock is ahead of the manager's, in ms. */
  readonly ahead: number;
  readonly noteRemade: () => void;
}

/** At most an eighth of `aloneMs`. */
const LOOK_MS = 60_000;
const NAME_ATTEMPTS = 3;
const LONGEST_NAME = 63;

/** Copies of managers' promoted keys, valid even while no manager is linked. */
export class PromotedCopies
  extends ReplicatedRecords<ToldKey, ApiKeyRecord>
  implements PromotedKeyCopies
{
  readonly #deps: PromotedCopiesDeps;
  readonly #copies = new Map<string, ApiKeyRecord>();
  readonly #lapsed = new Set<string>();

  constructor(deps: PromotedCopiesDeps) {
    const lookMs = Math.min(LOOK_MS, deps.aloneMs / 8);
    super({ ...deps, reports: deps.trust.reports, most: 2 * MOST_PROMOTED, lookMs });
    this.#deps = deps;
  }

  /** Call after the keys are loaded. Without managers, deletes the copies. */
  override async start(): Promise<void> {
    const { apiKeys, trust } = this.#deps;
    apiKeys.follow(({ kind, record }) => {
      if (kind === 'gone') this.#copies.delete(record.keyId);
      else if (record.promotedBy !== undefined) this.#copies.set(record.keyId, record);
    });
    trust.start();
    await super.start();
  }

  get warning(): string | undefined {
    const { clock, aloneMs, trust } = this.#deps;
    const [first] = unheardManagers(this.#copies.values(), trust);
    return first && lapseWarning(first, { now: clock.now(), aloneMs });
  }

  begin(manager: string): PromotedKeyVisit {
    const { clock, log } = this.#deps;
    const visit = this.visit(manager);
    let remade = 0;
    const noteRemade = (): void => {
      remade += 1;
      if (remade > 1) return;
      log.warn({ manager }, 'promoted-keys-stored-again');
    };
    return {
      ...visit,
      get remade() {
        return remade;
      },
      take: ({ keys, gone, now }) => {
        const ahead = clock.now() - now;
        const records = keys.map((key) => ({ key, ahead, noteRemade }));
        return visit.take({ records, gone, isWhole: false });
      },
      caughtUp: async (ids) => {
        await visit.caughtUp(ids);
        this.#lapsed.delete(manager);
      },
    };
  }

  protected override idOf({ key }: ToldKey): string {
    return key.keyId;
  }

  protected override copies(): Iterable<ApiKeyRecord> {
    return this.#copies.values();
  }

  protected override originOf({ promotedBy = '', keyId }: ApiKeyRecord): RecordOrigin {
    return { manager: promotedBy, id: keyId };
  }

  protected override remove(copy: ApiKeyRecord): Promise<void> {
    return this.#deps.apiKeys.remove(copy);
  }

  protected override failed(origin: RecordOrigin, error: unknown): void {
    const fields = { keyId: origin.id, error };
    if (this.wanted(origin)) this.#deps.log.warn(fields, 'promoted-key-not-stored');
    else this.#deps.log.warn(fields, 'promoted-key-not-removed');
  }

  protected override async look(): Promise<void> {
    this.#tellOfLapsed();
    await this.#confirm().catch((error: unknown) => {
      this.#deps.log.warn({ error }, 'promoted-key-not-stored');
    });
  }

  #tellOfLapsed(): void {
    const { clock, aloneMs, log, trust } = this.#deps;
    for (const { manager, since } of unheardManagers(this.#copies.values(), trust)) {
      if (clock.now() < since + aloneMs || this.#lapsed.has(manager)) continue;
      this.#lapsed.add(manager);
      log.warn({ manager, since: new Date(since).toISOString() }, 'promoted-keys-expired');
    }
  }

  async #confirm(): Promise<void> {
    const { apiKeys, clock, trust } = this.#deps;
    const due = [...this.#copies.values()].filter(
      (copy) =>
        trust.reports.isReported(copy.promotedBy ?? '', copy.keyId) && !this.#isConfirmed(copy),
    );
    await inParts(due, AT_ONCE, async (copy) => {
      try {
        await apiKeys.renew({ ...copy, confirmedAt: clock.now() });
      } catch (error) {
        if (!(error instanceof RecordConflict)) throw error; // renewed elsewhere, or gone
      }
    });
  }

  /** Keeps a reconnecting link from writing every key. */
  #isConfirmed({ confirmedAt = 0 }: ApiKeyRecord): boolean {
    const { clock, aloneMs } = this.#deps;
    return clock.now() - confirmedAt < aloneMs / 4;
  }

  protected override async keep({ manager, told }: WantedRecord<ToldKey>): Promise<Tried> {
    const { apiKeys, clock } = this.#deps;
    const { key, ahead, noteRemade } = told;
    const wanted = keyCopy(key, { ...this.#deps, manager, ahead, now: clock.now() });
    try {
      const known = apiKeys.find(key.keyId) ?? (await apiKeys.lookUp(key.keyId));
      if (!known) {
        await this.#create(wanted);
        return 'taken';
      }
      if (known.promotedBy !== manager) throw new RecordExists(`the id ${key.keyId} is taken`);
      const { shortName } = known;
      if (isSameCopy(known, wanted) && this.#isConfirmed(known)) return 'moot';
      await apiKeys.renew({ ...known, ...wanted, shortName });
      if (known.hash !== wanted.hash) noteRemade();
      return 'taken';
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      return 'moot'; // another replica received it too
    }
  }

  /** If a key of this cluster has the name, adds a random suffix. */
  async #create(wanted: Omit<ApiKeyRecord, 'revision'>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const end = `-${randomBytes(4).toString('hex')}`;
      const shortName =
        attempt === 1
          ? wanted.shortName
          : `${wanted.shortName.slice(0, LONGEST_NAME - end.length)}${end}`;
      try {
        return await this.#deps.apiKeys.keepCopy({ ...wanted, shortName });
      } catch (error) {
        if (!(error instanceof RecordExists) || attempt === NAME_ATTEMPTS) throw error;
      }
    }
  }
}

interface KeyCopyTerms {
  readonly manager: string;
  readonly pepper: Buffer;
  readonly namespaceOf: (team: string) => string;
  readonly now: number;
  /** How far this cluster's clock is ahead of the manager's, in ms. */
  readonly ahead: number;
}

/** A constant offset is already removed. */
const SAME_MS = 5_000;

/** Times follow this cluster's clock. */
const keyCopy = (
  { verifier, gated, makers, ...key }: PromotedKey,
  { manager, pepper, namespaceOf, now, ahead }: KeyCopyTerms,
): Omit<ApiKeyRecord, 'revision'> => ({
  ...key,
  namespace: namespaceOf(key.team),
  hash: promotedHashOf(verifier, pepper),
  global: true,
  promotedBy: manager,
  confirmedAt: now,
  ...(gated ? { gated } : {}),
  ...(makers ? { makers } : {}),
  issuedAt: Math.round(key.issuedAt + ahead),
  expiresAt: Math.round(key.expiresAt + ahead),
});

/** The name may differ here. */
const isSameCopy = (known: ApiKeyRecord, wanted: Omit<ApiKeyRecord, 'revision'>): boolean =>
  Math.abs(known.expiresAt - wanted.expiresAt) < SAME_MS &&
  known.hash === wanted.hash &&
  known.description === wanted.description;

interface UnheardManager {
  readonly manager: string;
  readonly since: number;
}

/** Longest silence first. */
const unheardManagers = (
  copies: Iterable<ApiKeyRecord>,
  trust: PromotedTrust,
): readonly UnheardManager[] => {
  const heard = new Set(trust.reports.managers);
  const since = new Map<string, number>();
  for (const copy of copies) {
    const { promotedBy = '' } = copy;
    const at = trust.confirmedAt(copy);
    if (!heard.has(promotedBy)) since.set(promotedBy, Math.max(at, since.get(promotedBy) ?? 0));
  }
  return [...since]
    .map(([manager, at]) => ({ manager, since: at }))
    .toSorted((one, other) => one.since - other.since);
};

/** Warns once half of `aloneMs` has passed. */
const lapseWarning = (
  { since }: UnheardManager,
  { now, aloneMs }: { readonly now: number; readonly aloneMs: number },
): string | undefined => {
  if (now - since < aloneMs / 2) return undefined;
  const [heard, until] = [since, since + aloneMs].map((at) => new Date(at).toISOString());
  return now >= since + aloneMs
    ? `promoted keys are refused until their manager confirms them again; it last did at ${heard}`
    : `promoted keys will be refused from ${until} on: the manager confirmed them last at ${heard}`;
};
