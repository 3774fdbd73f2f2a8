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

/** Managers that are remembered; the one that took the cluster in the longest ago goes first. */
const MOST_MANAGERS = 16;

const Kept = z.object({
  /** Absent: what the cluster is known by was given. */
  privateKey: z.string().optional(),
  managers: z.array(z.string()).max(MOST_MANAGERS),
});

export interface WorkerCredentialsTerms {
  readonly dataDir: string;
  /** Names a file that holds a join token, where there is one. */
  readonly joinTokenFile: string | undefined;
  /** Is what all replicas of the cluster are known by; undefined: a key that is kept here. */
  readonly key?: FleetKey;
}

/**
 * Holds what a worker cluster is known by, and knows its managers by: a key of its own, made once
 * or given, the keys of the managers that took it in, and the join token, which names one more.
 * Kept in `fleet/worker.json` of the data folder, for its owner alone; the file is written before a
 * word of it goes out.
 */
export class WorkerCredentials {
  readonly #file: string;
  readonly #joinToken: string | undefined;
  readonly #isGiven: boolean;
  #managers: readonly string[];
  readonly key: FleetKey;

  /**
   * Throws where a file or the token is malformed, and where the token can not be read before any
   * manager has taken the cluster in.
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

  /** The token, where it is of this manager and has not been used. */
  joinTokenFor(managerKey: string): string | undefined {
    return this.#isOfToken(managerKey) && !this.#managers.includes(managerKey)
      ? this.#joinToken
      : undefined;
  }

  /** The manager took the cluster in; from now on it needs no token there. */
  joined(managerKey: string): void {
    if (this.#managers.at(-1) === managerKey) return;
    const others = this.#managers.filter((each) => each !== managerKey);
    this.#managers = [...others, managerKey].slice(-MOST_MANAGERS);
    this.#write();
  }

  /** The manager does not know the cluster any more; it needs a token there. */
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
      if (this.#managers.length > 0) return undefined; // it has served
      throw new Error('the file of fleet.joinTokenFile can not be read', { cause });
    }
    if (parseJoinToken(token)) return token;
    throw new Error('the file of fleet.joinTokenFile holds no join token');
  }

  #write(): void {
    const kept: z.infer<typeof Kept> = {
      privateKey: this.#isGiven ? undefined : this.key.privateKeyPem,
      managers: [...this.#managers],
    };
    writePrivate(this.#file, `${JSON.stringify(kept)}\n`);
  }
}
