import { randomBytes } from 'node:crypto';
import type { Clock } from '../../contracts/clock.ts';
import type {
  PromotedChange,
  PromotedKey,
  PromotedKeyCopies,
  PromotedKeyVisit,
} from '../../contracts/fleet/promoted-keys.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordExists } from '../../contracts/record-store.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import type { PromotedTrust, TrustedLink } from '../../services/keys/promoted-trust.ts';
import { inParts } from './in-parts.ts';
import { isSameCopy, keyCopy } from './key-copy.ts';
import { StoreRetries, type Tried } from './store-retries.ts';
import { lapseWarning, unheardManagers } from './unheard-managers.ts';

export interface PromotedCopiesDeps {
  readonly apiKeys: ApiKeyMirror;
  readonly trust: PromotedTrust;
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly log: Log;
  /** How many addresses of managers this cluster has. */
  readonly managers: number;
  /** How long copies are good after their manager last said so, while that one is not heard. */
  readonly aloneMs: number;
  /** The namespace of a team, on this cluster. */
  readonly namespaceOf: (team: string) => string;
}

/** Copies are looked through so often, or eight times while they are good alone. */
const LOOK_MS = 60_000;
const NAME_ATTEMPTS = 3;
const LONGEST_NAME = 63;

/**
 * Keeps copies of managers' promoted keys among the keys of this cluster, so that they are good
 * here like those, also while no manager can be reached. Changes come one after the other,
 * whichever link they come by.
 */
export class PromotedCopies implements PromotedKeyCopies {
  readonly #deps: PromotedCopiesDeps;
  readonly #copies = new Map<string, ApiKeyRecord>();
  /** Copies that the store did not take, by manager and key; and those that it did not let go. */
  readonly #later: StoreRetries;
  readonly #removals: StoreRetries;
  /** The manager that proved last to be at an address. */
  readonly #managerAt = new Map<string, string>();
  /** Managers of which it was told that their keys are refused. */
  readonly #lapsed = new Set<string>();
  /** Copies that no link told of when they were looked through, though one has caught up. */
  #doubted: ReadonlySet<string> = new Set();
  #work: Promise<void> = Promise.resolve();
  #callOff = (): void => undefined;
  #stopped = false;

  constructor(deps: PromotedCopiesDeps) {
    this.#deps = deps;
    const inTurn = (work: () => Promise<void>): Promise<void> => this.#inTurn(work);
    this.#later = new StoreRetries({ clock: deps.clock, inTurn });
    this.#removals = new StoreRetries({ clock: deps.clock, inTurn });
  }

  /** Once the keys are known: a cluster that has no manager any more keeps no copies. */
  async start(): Promise<void> {
    const { apiKeys, trust } = this.#deps;
    apiKeys.follow(({ kind, record }) => {
      if (kind === 'gone') this.#copies.delete(record.keyId);
      else if (record.promotedBy !== undefined) this.#copies.set(record.keyId, record);
    });
    trust.start();
    if (this.#deps.managers === 0) return await this.#end(() => true);
    this.#look();
    // of a version that did not note it: from here on its time counts, over restarts too
    void this.#inTurn(() => this.#confirm()).catch((error: unknown) => this.#notConfirmed(error));
  }

  /** Writes nothing more. */
  stop(): void {
    this.#callOff();
    this.#later.stop();
    this.#removals.stop();
    this.#stopped = true;
  }

  /** Tells the operator of this cluster of a manager that is not heard. */
  get warning(): string | undefined {
    const { clock, aloneMs, trust } = this.#deps;
    const [first] = unheardManagers(this.#copies.values(), trust);
    return first && lapseWarning(first, { now: clock.now(), aloneMs });
  }

  /** Ends all copies, which managers that are linked again tell of anew: all links are over. */
  cutOff(): void {
    this.#deps.trust.cutOff();
    this.#managerAt.clear();
    void this.#inTurn(() => this.#endInTime(() => true));
  }

  leadsTo(address: string, manager: string): void {
    if (this.#managerAt.get(address) === manager) return;
    this.#managerAt.set(address, manager);
    void this.#inTurn(() => this.#endOthers());
  }

  begin(manager: string): PromotedKeyVisit {
    const { trust } = this.#deps;
    const link = trust.begin(manager, this.#known(manager));
    let remade = 0;
    const noteRemade = (): void => {
      remade += 1;
      if (remade > 1) return;
      this.#deps.log.warn(
        { manager },
        'promoted keys were kept with another pepper than this daemon has, and are made anew',
      );
    };
    return {
      get remade() {
        return remade;
      },
      take: (change) => {
        link.speaks = true;
        // refused from now on, whatever is written at this time
        for (const keyId of change.gone) trust.revoke(manager, keyId);
        const keys = change.keys.filter(({ keyId }) => trust.tell(link, keyId));
        return this.#inTurn(() => this.#take({ manager, noteRemade }, { ...change, keys }));
      },
      caughtUp: () => this.#inTurn(() => this.#caughtUp(link)),
      left: () => this.#inTurn(() => this.#end(({ promotedBy }) => promotedBy === manager)),
      end: () => {
        trust.end(link);
        void this.#inTurn(() => this.#endOthers());
      },
    };
  }

  /** Ids of a manager's keys that there are copies of, or that one is tried to be made of. */
  #known(manager: string): readonly string[] {
    const kept = [...this.#copies.values()].filter(({ promotedBy }) => promotedBy === manager);
    const begin = nameOf(manager, '');
    const later = this.#later.names.filter((name) => name.startsWith(begin));
    return [...kept.map(({ keyId }) => keyId), ...later.map((name) => name.slice(begin.length))];
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(() => (this.#stopped ? undefined : work()));
    this.#work = done.catch(() => undefined);
    return done;
  }

  async #take(by: Telling, { keys, gone, now }: PromotedChange): Promise<void> {
    const { manager } = by;
    await this.#removeGone(manager, gone);
    const ahead = this.#deps.clock.now() - now;
    await inParts(keys, (key) => this.#keep(by, key, ahead));
  }

  async #caughtUp(link: TrustedLink): Promise<void> {
    await this.#removeGone(link.manager, this.#deps.trust.caughtUp(link));
    this.#lapsed.delete(link.manager);
    await this.#endOthers();
  }

  /** Ends what is of managers that this cluster has no more, once all addresses have been heard. */
  async #endOthers(): Promise<void> {
    if (this.#stopped || this.#managerAt.size < this.#deps.managers) return;
    const managers = new Set(this.#managerAt.values());
    await this.#endInTime(
      ({ promotedBy = '' }) => !managers.has(promotedBy) && !this.#deps.trust.isLinked(promotedBy),
    );
  }

  /** Ends copies until they are told of again: here first, and durably when it resolves. */
  async #end(isMeant: (copy: ApiKeyRecord) => boolean): Promise<void> {
    await inParts(this.#refuse(isMeant), (copy) => this.#deps.apiKeys.remove(copy));
  }

  /** Does the same, and durably as soon as the store takes it. Never rejects. */
  async #endInTime(isMeant: (copy: ApiKeyRecord) => boolean): Promise<void> {
    await inParts(this.#refuse(isMeant), (copy) => this.#remove(copy));
  }

  #refuse(isMeant: (copy: ApiKeyRecord) => boolean): readonly ApiKeyRecord[] {
    const meant = [...this.#copies.values()].filter(isMeant);
    for (const { keyId, promotedBy = '' } of meant) this.#deps.trust.endCopy(promotedBy, keyId);
    return meant;
  }

  /** Removes copies that are refused already. Never rejects. */
  async #removeGone(manager: string, gone: readonly string[]): Promise<void> {
    for (const keyId of gone) this.#later.forget(nameOf(manager, keyId));
    const copies = gone.flatMap((keyId) => this.#copies.get(keyId) ?? []);
    const meant = copies.filter(({ promotedBy }) => promotedBy === manager);
    await inParts(meant, (copy) => this.#remove(copy));
  }

  /** Removes one that is refused, again and again where the store keeps it. Never rejects. */
  async #remove(copy: ApiKeyRecord): Promise<void> {
    const { apiKeys, trust, log } = this.#deps;
    const { keyId, promotedBy = '' } = copy;
    const name = nameOf(promotedBy, keyId);
    try {
      await apiKeys.remove(copy);
      this.#removals.forget(name);
    } catch (error) {
      if (!this.#removals.has(name))
        log.warn({ keyId, error }, 'a copy of a promoted key can not be removed');
      this.#removals.put(name, async () => {
        const standing = this.#copies.get(keyId);
        if (standing?.promotedBy !== promotedBy || !trust.refuse(promotedBy, keyId)) return 'moot';
        await apiKeys.remove(standing);
        return 'taken';
      });
    }
  }

  /** Ends copies that no link has told of for as long as it takes to look twice. */
  async #endDoubted(): Promise<void> {
    const { trust } = this.#deps;
    const heard = new Set(trust.managers);
    const doubted = [...this.#copies.values()].filter(
      (copy) => heard.has(copy.promotedBy ?? '') && !trust.isTold(copy),
    );
    const before = this.#doubted;
    this.#doubted = new Set(doubted.map(({ keyId }) => keyId));
    await this.#endInTime((copy) => before.has(copy.keyId) && doubted.includes(copy));
  }

  /** Confirms copies of managers that are heard, and tells of those that lapse, ever again. */
  #look(): void {
    const { clock, aloneMs, log, trust } = this.#deps;
    if (this.#stopped) return;
    this.#callOff = clock.at(clock.now() + Math.min(LOOK_MS, aloneMs / 8), () => {
      void this.#inTurn(async () => {
        await this.#endDoubted();
        await this.#confirm();
      })
        .catch((error: unknown) => this.#notConfirmed(error))
        .finally(() => this.#look());
      for (const { manager, since } of unheardManagers(this.#copies.values(), trust)) {
        if (clock.now() < since + aloneMs || this.#lapsed.has(manager)) continue;
        this.#lapsed.add(manager);
        log.warn(
          { manager, since: new Date(since).toISOString() },
          'promoted keys are refused: their manager was not heard for too long',
        );
      }
    });
  }

  #notConfirmed(error: unknown): void {
    this.#deps.log.warn({ error }, 'a promoted key can not be kept');
  }

  async #confirm(): Promise<void> {
    const { apiKeys, clock, trust } = this.#deps;
    const due = [...this.#copies.values()].filter(
      (copy) => copy.confirmedAt === undefined || (trust.isTold(copy) && !this.#isConfirmed(copy)),
    );
    await inParts(due, async (copy) => {
      try {
        await apiKeys.renew({ ...copy, confirmedAt: clock.now() });
      } catch (error) {
        if (!(error instanceof RecordConflict)) throw error; // another replica did, or it is gone
      }
    });
  }

  /** Lately enough: not each link that comes back costs a write for each key. */
  #isConfirmed({ confirmedAt = 0 }: ApiKeyRecord): boolean {
    const { clock, aloneMs } = this.#deps;
    return clock.now() - confirmedAt < aloneMs / 4;
  }

  async #keep(by: Telling, key: PromotedKey, ahead: number): Promise<void> {
    const { trust, log } = this.#deps;
    const { keyId } = key;
    const name = nameOf(by.manager, keyId);
    try {
      await this.#write(by, key, ahead);
      this.#later.forget(name);
    } catch (error) {
      if (!this.#later.has(name)) log.warn({ keyId, error }, 'a promoted key can not be kept');
      // for as long as the manager can be heard and says nothing else
      this.#later.put(name, async () => {
        if (trust.managers.includes(by.manager)) return await this.#write(by, key, ahead);
        // it may say yet that the key is gone
        return trust.isLinked(by.manager) ? 'too early' : 'moot';
      });
    }
  }

  async #write({ manager, noteRemade }: Telling, key: PromotedKey, ahead: number): Promise<Tried> {
    const { apiKeys, trust } = this.#deps;
    if (trust.isOver(manager, key.keyId)) return 'moot'; // it ended since it was told
    this.#removals.forget(nameOf(manager, key.keyId));
    const wanted = keyCopy(key, { ...this.#deps, manager, ahead, now: this.#deps.clock.now() });
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
      return 'moot'; // another replica was told of it too
    }
  }

  /** Under its own name, or where a key of this cluster has that, one that begins like it. */
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

/** The link that tells of keys. */
interface Telling {
  readonly manager: string;
  readonly noteRemade: () => void;
}

const nameOf = (manager: string, keyId: string): string => `${manager} ${keyId}`;
