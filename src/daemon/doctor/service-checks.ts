import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask } from './daemon-checks.ts';
import { type Check, type Finding, ok, type Patient, warning } from './finding.ts';

const DAY_MS = 24 * 3_600_000;
/** As the alert SandpoolKeyEnds: long-lived keys shortly before their end. */
const [ENDS_WITHIN_MS, LONG_LIVED_MS] = [14 * DAY_MS, 28 * DAY_MS];
const KEYS_A_PAGE = 100;
const MOST_KEYS = 10_000;
const MOST_NAMED = 5;

export const brokenPools: Check = async (patient) => {
  const service = serviceOf(patient);
  if (!service) return [];
  const lists = await Promise.all(
    ['Failed', 'Degraded'].map((phase) =>
      service(`/sandboxpools?all=true&phase=${phase}&limit=${MOST_NAMED}`),
    ),
  );
  if (lists.includes(undefined)) return unseen('pools');
  const total = lists.reduce((sum, list) => sum + (list?.total ?? 0), 0);
  if (total === 0) return ok('pools', 'none is Failed or Degraded');
  const names = lists
    .flatMap((list) => list?.items ?? [])
    .slice(0, MOST_NAMED)
    .map(({ namespace, name }) => `${String(namespace)}/${String(name)}`);
  return warning(
    'pools',
    `pools that can’t start instances: ${total} (${listed(names, total)})`,
    'see why: sandpool top --broken --admin',
  );
};

export const keyEnds: Check = async (patient) => {
  const service = serviceOf(patient);
  if (!service) return [];
  const ending: string[] = [];
  for (let offset = 0; offset < MOST_KEYS; offset += KEYS_A_PAGE) {
    const page = await service(`/admin/api-keys?limit=${KEYS_A_PAGE}&offset=${offset}`);
    if (!page) return unseen('key ends');
    ending.push(...page.items.filter(endsSoon).map(({ name }) => String(name)));
    if (offset + KEYS_A_PAGE >= page.total) break;
  }
  if (ending.length === 0) return ok('key ends', 'no key expires within 14 days');
  return warning(
    'key ends',
    `API keys that expire within 14 days: ${ending.length} ` +
      `(${listed(ending.slice(0, MOST_NAMED), ending.length)})`,
    'list them: sandpool keys list --all --admin; create new keys: sandpool keys create',
  );
};

const endsSoon = ({ issuedAt, expiresAt }: Item): boolean => {
  const [from, to] = [Date.parse(String(issuedAt)), Date.parse(String(expiresAt))];
  return to - from >= LONG_LIVED_MS && to - Date.now() < ENDS_WITHIN_MS;
};

const listed = (names: readonly string[], total: number): string =>
  names.length < total ? `${names.join(', ')} and others` : names.join(', ');

const unseen = (name: string): readonly Finding[] =>
  warning(
    name,
    'the daemon does not answer keys/admin.key',
    'restart the daemon: it creates a new key if that one has expired',
  );

type Item = Readonly<Record<string, unknown>>;
interface Page {
  readonly items: readonly Item[];
  readonly total: number;
}

/** Undefined if no daemon runs or its admin key is unreadable. */
const serviceOf = ({
  daemon,
  config: { dataDir },
}: Patient): ((path: string) => Promise<Page | undefined>) | undefined => {
  if (!daemon) return undefined;
  let key: string;
  try {
    key = readFileSync(join(dataDir, 'keys/admin.key'), 'utf8').trim();
  } catch {
    return undefined;
  }
  return async (path) => {
    const { status, text } = await ask(`${daemon.address}${path}`, key, MOST_BYTES);
    return status === 200 ? (JSON.parse(text) as Page) : undefined;
  };
};

const MOST_BYTES = 1_048_576;
