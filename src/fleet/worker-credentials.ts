import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { writePrivate } from '../lib/private-file.ts';
import {
  fingerprintOf,
  fleetKeyOf,
  newFleetKey,
  parseJoinToken,
  type FleetKey,
} from './fleet-keys.ts';

const Kept = z.object({ privateKey: z.string(), managers: z.array(z.string()).max(16) });

/**
 * Holds what a worker cluster is known by, and knows its managers by: a key of its own, made once,
 * and the keys of the managers that took it in. Kept in `fleet/worker.json` of the data folder, for
 * its owner alone; the file is written before a word of it goes out.
 */
export class WorkerCredentials {
  readonly #file: string;
  readonly #joinToken: string | undefined;
  readonly #managers: Set<string>;
  readonly key: FleetKey;

  /** Throws where the file or the token is malformed. */
  constructor(dataDir: string, joinToken: string | undefined) {
    this.#file = join(dataDir, 'fleet', 'worker.json');
    if (joinToken !== undefined && !parseJoinToken(joinToken))
      throw new Error('the file of fleet.joinTokenFile holds no join token');
    this.#joinToken = joinToken;
    if (existsSync(this.#file)) {
      const kept = Kept.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
      this.key = fleetKeyOf(kept.privateKey);
      this.#managers = new Set(kept.managers);
    } else {
      this.key = newFleetKey();
      this.#managers = new Set();
      this.#write();
    }
  }

  trusts(managerKey: string): boolean {
    return this.#managers.has(managerKey) || this.joinTokenFor(managerKey) !== undefined;
  }

  /** The token, where it is of this manager and has not been used. */
  joinTokenFor(managerKey: string): string | undefined {
    if (this.#joinToken === undefined || this.#managers.has(managerKey)) return undefined;
    const { fingerprint } = parseJoinToken(this.#joinToken) ?? {};
    return fingerprint === fingerprintOf(managerKey) ? this.#joinToken : undefined;
  }

  /** The manager took the cluster in; from now on it needs no token there. */
  joined(managerKey: string): void {
    if (this.#managers.has(managerKey)) return;
    this.#managers.add(managerKey);
    this.#write();
  }

  /** The manager does not know the cluster any more; it needs a token there. */
  left(managerKey: string): void {
    if (this.#managers.delete(managerKey)) this.#write();
  }

  #write(): void {
    writePrivate(
      this.#file,
      `${JSON.stringify({ privateKey: this.key.privateKeyPem, managers: [...this.#managers] })}\n`,
    );
  }
}
