import type { Clock } from '../../contracts/clock.ts';
import {
  MOST_PROMOTED,
  type PromotedKey,
  type PromotedKeySource,
} from '../../contracts/fleet/promoted-keys.ts';
import type { Log } from '../../contracts/log.ts';
import { RecordConflict } from '../../contracts/sandbox-driver.ts';
import type { ApiKeyRecord } from '../../model/api-key.ts';
import { apiKeyAlreadyGlobal, Refusal, unavailable } from '../../model/refusals.ts';
import type { ApiKeyMirror } from '../../services/keys/api-keys.ts';
import { openedVerifier } from '../../services/keys/mint-api-key.ts';

export interface PromotedKeysDeps {
  readonly apiKeys: Pick<
    ApiKeyMirror,
    'find' | 'lookUp' | 'follow' | 'followEnd' | 'caughtUp' | 'renew'
  >;
  readonly pepper: Buffer;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * A manager's keys that are valid on all its clusters. Only a key's own record says that it is
 * promoted, so a revocation applies everywhere.
 */
export class PromotedKeys implements PromotedKeySource {
  readonly #deps: PromotedKeysDeps;
  readonly #known = new Set<string>();
  readonly #unreported = new Set<string>();
  readonly #followers = new Set<(keyId: string) => void>();

  constructor(deps: PromotedKeysDeps) {
    this.#deps = deps;
  }

  /** Call after the keys are loaded. */
  start(): void {
    const { apiKeys } = this.#deps;
    apiKeys.follow(({ kind, record }) => {
      const { keyId, global = false, promotedBy } = record;
      if (kind === 'gone' || !global || promotedBy !== undefined) return;
      this.#lookAt(record);
      if (!this.#known.has(keyId)) {
        this.#known.add(keyId);
        apiKeys.followEnd(keyId, () => {
          this.#known.delete(keyId);
          this.#unreported.delete(keyId);
          this.#changed(keyId);
        });
      }
      this.#changed(keyId);
    });
  }

  get warning(): string | undefined {
    const { size } = this.#unreported;
    return size === 0
      ? undefined
      : `promoted keys that cannot be sent to workers: ${size}; they were created with ` +
          'another pepper than this replica has, or their records were changed by hand';
  }

  async list(): Promise<readonly PromotedKey[]> {
    await this.#deps.apiKeys.caughtUp();
    return [...this.#known].flatMap((keyId) => this.find(keyId) ?? []);
  }

  find(keyId: string): PromotedKey | undefined {
    const record = this.#deps.apiKeys.find(keyId);
    return record && this.#told(record);
  }

  follow(changed: (keyId: string) => void): () => void {
    this.#followers.add(changed);
    return () => this.#followers.delete(changed);
  }

  /** Durable when it resolves. Refuses with ALREADY_GLOBAL or CONFLICT. */
  async promote(record: ApiKeyRecord): Promise<void> {
    const { apiKeys, pepper, clock } = this.#deps;
    if (record.expiresAt <= clock.now()) throw new Refusal('CONFLICT', 'the API key has expired');
    if (openedVerifier(record, pepper) === undefined) throw NOT_CHECKABLE();
    if (this.#known.size >= MOST_PROMOTED)
      throw new Refusal('CONFLICT', `${MOST_PROMOTED} API keys are global, which is the maximum`);
    try {
      await apiKeys.renew({ ...record, global: true });
    } catch (error) {
      if (!(error instanceof RecordConflict)) throw error;
      if ((await apiKeys.lookUp(record.keyId))?.global) throw apiKeyAlreadyGlobal();
      throw unavailable('another request is changing this key; try again');
    }
  }

  #told(record: ApiKeyRecord): PromotedKey | undefined {
    const { pepper, clock } = this.#deps;
    if (!record.global || record.promotedBy !== undefined || record.expiresAt <= clock.now())
      return undefined;
    const verifier = openedVerifier(record, pepper);
    if (verifier === undefined) return undefined;
    const { keyId, shortName, team, user, role, description, gated, makers } = record;
    return {
      ...{ keyId, shortName, team, user, role, description, verifier, gated, makers },
      issuedAt: record.issuedAt,
      expiresAt: record.expiresAt,
    };
  }

  #lookAt(record: ApiKeyRecord): void {
    const { pepper, log } = this.#deps;
    const { keyId } = record;
    if (openedVerifier(record, pepper) !== undefined) return void this.#unreported.delete(keyId);
    if (!this.#unreported.has(keyId)) log.warn({ keyId }, 'promoted-key-not-sent');
    this.#unreported.add(keyId);
  }

  #changed(keyId: string): void {
    for (const follower of this.#followers) follower(keyId);
  }
}

const NOT_CHECKABLE = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'other clusters cannot verify this API key: it was created with a different pepper than this ' +
      "daemon's, or its record was changed by hand; create another key",
  );
