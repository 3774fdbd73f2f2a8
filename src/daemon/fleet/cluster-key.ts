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
 * The replicas' shared key, from `fleet.key` in their secrets. Undefined if the daemon keeps its
 * own keys. Throws with advice; the message never quotes the content.
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
  'must contain an Ed25519 key, such as "openssl genpkey -algorithm ed25519" prints, the ' +
  'same for every replica; see docs/fleet.md';

/** A parser's message may quote the key. */
const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unknown';

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
