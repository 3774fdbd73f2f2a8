import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from './daemon.ts';
import type { Ask } from './kept-connection.ts';
import { expectAll, type Load } from './load.ts';
import type { Service } from './service.ts';

const KEYS_IN_FLIGHT = 8;

/** So many further keys of the service's user. */
export const makeKeys = async (
  load: Load,
  service: Service,
  count: number,
): Promise<readonly string[]> => {
  if (count <= 0) return [];
  const asks = service.keyed(
    Array.from({ length: count }, (): Ask => ({ method: 'POST', path: '/api-keys', body: '{}' })),
  );
  const made = await load.closed(service.port, asks, KEYS_IN_FLIGHT);
  expectAll(made, 201);
  return made.bodies.map((body) => (JSON.parse(body) as { readonly apiKey: string }).apiKey);
};

/** A key for a user of each of these teams, made by the admin of the first start. */
export const keysOfTeams = async (
  load: Load,
  { dataDir, service: { port } }: Daemon,
  teams: readonly string[],
): Promise<readonly string[]> => {
  const key = readFileSync(join(dataDir, 'keys', 'admin.key'), 'utf8').trim();
  const asks = teams.map((team): Ask => ({
    method: 'POST',
    path: '/admin/api-keys',
    key,
    body: JSON.stringify({ team, user: team }),
  }));
  const made = await load.closed(port, asks, KEYS_IN_FLIGHT);
  expectAll(made, 201);
  return made.bodies.map((body) => (JSON.parse(body) as { readonly apiKey: string }).apiKey);
};

/** So many claims, each by the next key and from the next pool, beginning with the nth of each. */
export const claimsBy = (
  keys: readonly string[],
  pools: readonly string[],
  { from, count }: { readonly from: number; readonly count: number },
): readonly Ask[] =>
  Array.from({ length: count }, (_, n): Ask => ({
    method: 'POST',
    path: '/sandboxes',
    key: keys[(from + n) % keys.length] ?? '',
    body: JSON.stringify({ poolName: pools[(from + n) % pools.length] ?? '' }),
  }));
