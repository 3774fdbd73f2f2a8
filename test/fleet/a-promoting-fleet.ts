import type { Clock } from '../../src/contracts/clock.ts';
import type { Log } from '../../src/contracts/log.ts';
import type { Records } from '../../src/contracts/record-store.ts';
import type { ApiKeyRecord } from '../../src/model/api-key.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { PromotedCopies } from '../../src/fleet/replication/promoted-copies.ts';
import { PromotedKeys } from '../../src/fleet/replication/promoted-keys.ts';
import { ApiKeyMirror } from '../../src/services/keys/api-keys.ts';
import { authenticate } from '../../src/services/keys/authenticate.ts';
import { mintApiKey } from '../../src/services/keys/mint-api-key.ts';
import { PromotedTrust } from '../../src/services/keys/promoted-trust.ts';
import { aCoordination } from '../support/fakes/a-coordination.ts';
import { MemoryApiKeys } from '../support/fakes/memory-api-keys.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';

/** How long copies of promoted keys are good while their manager is not heard. */
export const ALONE_MS = 12 * 3_600_000;

/** The API keys of one cluster: a store that outlives its daemon, which may be started again. */
export class ClusterKeys {
  readonly store = new MemoryApiKeys();
  readonly pepper: Buffer;
  /** What its operator was warned of. */
  readonly warned: string[] = [];
  readonly #clock: Clock;
  readonly #records: Records<ApiKeyRecord>;
  apiKeys!: ApiKeyMirror;
  keys!: PromotedKeys;
  copies!: PromotedCopies;
  #authenticate!: (key: string) => unknown;
  #serial = 0;

  private constructor(pepper: number, clock: Clock, records: Records<ApiKeyRecord> | undefined) {
    this.pepper = Buffer.alloc(32, pepper);
    this.#records = records ?? this.store;
    this.#clock = clock;
  }

  /** `records`: of a store that other replicas of the cluster have too. */
  static async start(
    pepper: number,
    clock: Clock,
    records?: Records<ApiKeyRecord>,
  ): Promise<ClusterKeys> {
    const cluster = new ClusterKeys(pepper, clock, records);
    await cluster.restart();
    return cluster;
  }

  /** What the daemon knew is gone, and what it stored is not. `managers`: of its configuration. */
  async restart(managers = 1): Promise<void> {
    const clock = this.#clock;
    const trust = new PromotedTrust({ clock, hasManagers: managers > 0, aloneMs: ALONE_MS });
    this.apiKeys = new ApiKeyMirror({
      apiKeys: this.#records,
      clock,
      revocations: aCoordination(clock),
      trust,
    });
    await this.apiKeys.start();
    const log: Log = { ...quietLog, warn: (_fields, event) => void this.warned.push(event) };
    const deps = { apiKeys: this.apiKeys, pepper: this.pepper, clock, log };
    this.keys = new PromotedKeys(deps);
    this.keys.start();
    this.copies = new PromotedCopies({
      ...deps,
      trust,
      managers,
      aloneMs: ALONE_MS,
      namespaceOf: (team) => `here-${team}`,
    });
    await this.copies.start();
    this.#authenticate = authenticate(deps);
  }

  async mint({ lifetimeMs = 3_600_000, namespace = 'team-blue' } = {}): Promise<{
    record: ApiKeyRecord;
    apiKey: string;
  }> {
    const issuedAt = this.#clock.now();
    const minted = mintApiKey(
      {
        tenant: { namespace, team: 'blue', user: 'ada' },
        role: 'user',
        shortName: `k${(this.#serial += 1)}`,
        description: 'd',
        issuedAt,
        expiresAt: issuedAt + lifetimeMs,
      },
      this.pepper,
    );
    return { record: await this.apiKeys.create(minted.record), apiKey: minted.apiKey };
  }

  async promote(record: ApiKeyRecord): Promise<void> {
    await this.keys.promote(this.apiKeys.find(record.keyId) ?? record);
  }

  /** `good`, or the code of the refusal. */
  told(apiKey: string): string {
    try {
      this.#authenticate(apiKey);
      return 'good';
    } catch (error) {
      if (error instanceof Refusal) return error.code;
      throw error;
    }
  }
}
