import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import {
  fleetKeyOf,
  newFleetKey,
  signatureCheck,
  type FleetKey,
} from '../../fleet/link/fleet-keys.ts';
import { writePrivate } from '../../lib/private-file.ts';

/**
 * Reads the key by which the replicas of this cluster are known in a fleet, from `fleet.key` among
 * their secrets; undefined where the daemon keeps keys of its own in the data folder. Throws with
 * what to do where it is missing or no such key; its content is never quoted.
 */
export const sharedClusterKey = ({
  assembly,
  secretsDir = '',
}: Pick<Config, 'assembly' | 'secretsDir'>): FleetKey | undefined => {
  if (assembly === 'embedded') return undefined;
  const file = join(secretsDir, 'fleet.key');
  try {
    const key = fleetKeyOf(readFileSync(file, 'utf8'));
    if (signatureCheck(key.publicKey)) return key;
  } catch (cause) {
    throw new Error(`${file} ${NEEDED}`, { cause: codeOf(cause) });
  }
  throw new Error(`${file} ${NEEDED}`);
};

const NEEDED =
  'must hold an Ed25519 key, such as "openssl genpkey -algorithm ed25519" prints, the same for ' +
  'every replica; see docs/fleet.md';

/** The code alone: what a parser says of a key may quote it. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown';

/** The manager's own key in its data folder, made once. */
export const ownManagerKey = (dataDir: string): FleetKey => {
  const file = join(dataDir, 'fleet', 'manager.json');
  if (existsSync(file)) {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as { readonly privateKey: string };
    return fleetKeyOf(kept.privateKey);
  }
  const key = newFleetKey();
  writePrivate(file, `${JSON.stringify({ privateKey: key.privateKeyPem })}\n`);
  return key;
};
