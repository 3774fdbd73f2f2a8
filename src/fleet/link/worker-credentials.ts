import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writePrivate } from '../../lib/private-file.ts';
import {
  fingerprintOf,
  fleetKeyOf,
  newFleetKey,
  parseJoinToken,
  type FleetKey,
} from './fleet-keys.ts';

/** Drops the manager that joined longest ago. */
const MOST_MANAGERS = 16;

const Kept = z.object({
  /** Absent if the key comes from the configuration. */
  privateKey: z.string().optional(),
  managers: z.array(z.string()).max(MOST_MANAGERS),
});

export interface WorkerCredentialsTerms {
  readonly dataDir: string;
  readonly joinTokenFile: string | undefined;
  /** Shared by the cluster's replicas; if absent, the key in the data folder. */
  readonly key?: FleetKey;
}

/**
 * A worker cluster's key, the keys of managers that accepted it, and a join token for one more.
 * Stored in `fleet/worker.json`, readable only by its owner. A new key or manager is written before
 * it is used.
 */
export class WorkerCredentials {
  readonly #file: string;
  readonly #joinToken: string | undefined;
  readonly #isGiven: boolean;
  #managers: readonly string[];
  readonly key: FleetKey;

  /**
   * Throws if a file or the token is malformed, or if the token cannot be read and no manager has
   * accepted the cluster.
   */
  constructor({ dataDir, joinTokenFile, key }: WorkerCredentialsTerms) {
    this.#file = join(dataDir, 'fleet', 'worker.json');
    const kept = existsSync(this.#file)
      ? Kept.parse(JSON.parse(readFileSync(this.#file, 'utf8')))
      : undefined;
    const { privateKey } = kept ?? {};
    this.key = key ?? (privateKey === undefined ? newFleetKey() : fleetKeyOf(privateKey));
    this.#isGiven = key !== undefined;
    this.#managers = kept?.managers ?? [];
    this.#joinToken = joinTokenFile === undefined ? undefined : this.#tokenIn(joinTokenFile);
    if (!key && privateKey === undefined) this.#write();
  }

  trusts(managerKey: string): boolean {
    return this.#managers.includes(managerKey) || this.#isOfToken(managerKey);
  }

  /** Undefined if the token is used or for another manager. */
  joinTokenFor(managerKey: string): string | undefined {
    return this.#isOfToken(managerKey) && !this.#managers.includes(managerKey)
      ? this.#joinToken
      : undefined;
  }

  joined(managerKey: string): void {
    if (this.#managers.at(-1) === managerKey) return;
    const others = this.#managers.filter((each) => each !== managerKey);
    this.#managers = [...others, managerKey].slice(-MOST_MANAGERS);
    this.#write();
  }

  left(managerKey: string): void {
    if (!this.#managers.includes(managerKey)) return;
    this.#managers = this.#managers.filter((each) => each !== managerKey);
    this.#write();
  }

  #isOfToken(managerKey: string): boolean {
    if (this.#joinToken === undefined) return false;
    return parseJoinToken(this.#joinToken)?.fingerprint === fingerprintOf(managerKey);
  }

  #tokenIn(file: string): string | undefined {
    let token: string;
    try {
      token = readFileSync(file, 'utf8').trim();
    } catch (cause) {
      if (this.#managers.length > 0) return undefined; // the token was used already
      throw new Error('the file in fleet.joinTokenFile cannot be read', { cause });
    }
    if (parseJoinToken(token)) return token;
    throw new Error('the file in fleet.joinTokenFile contains no join token');
  }

  #write(): void {
    const kept: z.infer<typeof Kept> = {
      privateKey: this.#isGiven ? undefined : this.key.privateKeyPem,
      managers: [...this.#managers],
    };
    writePrivate(this.#file, `${JSON.stringify(kept)}\n`);
  }
}
