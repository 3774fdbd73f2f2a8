import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { compatibleId, instanceIdOf } from '../../../src/http/e2b/sandbox-id.ts';
import { nameOf } from '../../../src/embedded/spawner/protocol.ts';
import { DaemonUnderTest, within } from '../harness/a-daemon.ts';
import { Dice } from '../builders/hostile-values.ts';
import type { HttpClient } from '../harness/http-client.ts';
import { clear, stocked } from '../harness/on-a-daemon.ts';
import { NEVER_COMES_MS } from '../harness/eventually.ts';
import { line } from '../harness/line.ts';

export interface Damage {
  /** Also deletes that were undone. */
  readonly lost: number;
  readonly ownedTwice: number;
  /** They have processes unknown to the daemon 10 s later. */
  readonly orphans: number;
  /** Running sandboxes without their state. */
  readonly dead: number;
  readonly details: readonly string[];
}

export interface Rounds {
  readonly rounds: number;
  readonly seed: number;
  readonly onRound?: (round: number, victim: Victim, seen: RoundCounts) => void;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
export type Victim = 'daemon' | 'spawner' | 'both';
export interface RoundCounts {
  readonly claims: number;
  readonly deletes: number;
  readonly running: number;
}

const POOL = 12;
const CLIENTS = 6;

/**
 * Kills daemon, spawner or both with -9 during claims and deletes, and checks all that was
 * acknowledged.
 */
export const killRounds = async ({ rounds, seed, onRound }: Rounds): Promise<Damage> => {
  const dice = new Dice(seed);
  const random = (): number => dice.next();
  const damage: Mutable<Damage> = { lost: 0, ownedTwice: 0, orphans: 0, dead: 0, details: [] };
  const everClaimed = new Set<string>();
  const daemon = await DaemonUnderTest.start(line`--default-pool-replicas ${POOL}
    --log-level error --compatible-api-listen 127.0.0.1:0`);
  try {
    for (let round = 0; round < rounds; round++) {
      await stocked(daemon.client(), POOL);
      const victim = (['daemon', 'spawner', 'both'] as const)[Math.floor(random() * 3)] ?? 'both';
      const load = new Load(daemon, everClaimed);
      load.begin(random);
      await pause(20 + random() * 400);
      await strike(daemon, victim);
      await load.end();
      if (victim !== 'spawner') await daemon.start();
      const client = daemon.client();
      const counts = await judge(daemon, client, load, damage);
      onRound?.(round, victim, counts);
      await clear(client);
    }
  } finally {
    await daemon.dispose();
  }
  return damage;
};

/** Every second client uses the port for E2B's SDKs. */
class Load {
  /** Acknowledged and, as far as is known, held. */
  readonly held = new Set<string>();
  readonly marked = new Set<string>();
  readonly deleted = new Set<string>();
  ownedTwice = 0;
  readonly #daemon: DaemonUnderTest;
  readonly #everClaimed: Set<string>;
  #workers: Promise<void>[] = [];
  #over = false;

  constructor(daemon: DaemonUnderTest, everClaimed: Set<string>) {
    this.#daemon = daemon;
    this.#everClaimed = everClaimed;
  }

  begin(random: () => number): void {
    const client = this.#daemon.client();
    const bySdk = this.#daemon.compatibleClient();
    this.#workers = Array.from({ length: CLIENTS }, (_, at) =>
      this.#work({ client, by: at % 2 === 0 ? overRest(client) : overSdk(bySdk) }, random),
    );
  }

  async end(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#workers);
  }

  async #work(hands: Hands, random: () => number): Promise<void> {
    while (!this.#over) {
      try {
        await this.#once(hands, random);
      } catch {}
      await pause(2);
    }
  }

  async #once({ client, by }: Hands, random: () => number): Promise<void> {
    const id = await by.claim();
    if (id === undefined) return;
    if (this.#everClaimed.has(id)) this.ownedTwice += 1;
    this.#everClaimed.add(id);
    this.held.add(id);
    const { json: ran } = await client.post(
      `/sandboxes/${id}/exec`,
      { command: `echo ${id} > /tmp/mark && echo done` },
      { signal: AbortSignal.timeout(ANSWER_MS) },
    );
    if (ran.stdout === 'done\n') this.marked.add(id);
    if (random() < 0.5) return;
    this.held.delete(id); // either outcome is right until it is acknowledged
    if (await by.delete(id)) this.deleted.add(id);
  }
}

interface Way {
  readonly claim: () => Promise<string | undefined>;
  readonly delete: (id: string) => Promise<boolean>;
}

interface Hands {
  readonly client: HttpClient;
  readonly by: Way;
}

const ANSWER_MS = NEVER_COMES_MS;

const overRest = (client: HttpClient): Way => ({
  claim: async () => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const { status, json } = await client.post('/sandboxes', { poolName: 'default' }, { signal });
    return status === 201 ? json.sandbox?.['sandboxId'] : undefined;
  },
  delete: async (id) => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    return (await client.delete(`/sandboxes/${id}`, { signal })).status === 200;
  },
});

const overSdk = (client: HttpClient): Way => ({
  claim: async () => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const body = { templateID: 'base', timeout: 3_600 };
    const { status, text } = await client.post('/v2/sandboxes', body, { signal });
    if (status !== 201) return undefined;
    return instanceIdOf((JSON.parse(text) as { readonly sandboxID: string }).sandboxID);
  },
  delete: async (id) => {
    const signal = AbortSignal.timeout(ANSWER_MS);
    return (await client.delete(`/sandboxes/${compatibleId(id)}`, { signal })).status === 204;
  },
});

const judge = async (
  daemon: DaemonUnderTest,
  client: HttpClient,
  load: Load,
  damage: Mutable<Damage>,
): Promise<RoundCounts> => {
  damage.ownedTwice += load.ownedTwice;
  for (const id of load.held) {
    const { status, json } = await client.get(`/sandboxes/${id}`);
    if (status !== 200 || json.sandbox?.['status'] !== 'Running') {
      damage.lost += 1;
      damage.details = [...damage.details, `lost ${id}: ${status} ${JSON.stringify(json)}`];
      continue;
    }
    if (!load.marked.has(id)) continue;
    const mark = await within(`${id} answers`, async () => {
      const answer = await client.post(`/sandboxes/${id}/exec`, { command: 'cat /tmp/mark' });
      return answer.status === 503 ? undefined : answer;
    });
    if (mark.json.stdout === `${id}\n`) continue;
    damage.dead += 1;
    damage.details = [...damage.details, `dead ${id}: ${mark.status} ${mark.text}`];
  }
  for (const id of load.deleted) {
    const gone = await within(
      `${id} is gone`,
      async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
    ).catch(() => false);
    if (gone) continue;
    damage.lost += 1;
    damage.details = [...damage.details, `not gone ${id}`];
  }
  let strays: readonly string[] = [];
  await within('no orphan', async () => {
    strays = await straysOf(daemon, client);
    return strays.length === 0 || undefined;
  }).catch(() => {
    damage.orphans += strays.length;
    damage.details = [...damage.details, `orphans ${strays.join(' ')}`];
  });
  return {
    claims: load.held.size,
    deletes: load.deleted.size,
    running: (await client.get('/sandboxes?phase=Running')).json.total ?? 0,
  };
};

/** They have processes on this machine. */
const straysOf = async (
  daemon: DaemonUnderTest,
  client: HttpClient,
): Promise<readonly string[]> => {
  const known = new Set<string>();
  for (const phase of ['Idle', 'Starting', 'Running', 'Stopping', 'Failed']) {
    const { json } = await client.get(`/sandboxes?phase=${phase}&limit=1000`);
    for (const item of json.items ?? []) known.add(String(item['sandboxId']));
  }
  return [...instancesWithProcesses(daemon.dataDir)].filter((id) => !known.has(id));
};

/** By the cgroups of this machine's processes. */
export const instancesWithProcesses = (dataDir: string): ReadonlySet<string> => {
  const found = new Set<string>();
  const place = new RegExp(`${nameOf(dataDir)}/tenant-[0-9a-f]+/([0-9a-f-]{36})`);
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const match = place.exec(readFileSync(`/proc/${pid}/cgroup`, 'utf8'));
      if (match?.[1]) found.add(match[1]);
    } catch {}
  }
  return found;
};

/** The spawner holds the folder's lock file open. */
export const spawnerPid = (dataDir: string): number | undefined => {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (
        readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('sandpool-spawne') &&
        readdirSync(`/proc/${pid}/fd`).some(
          (fd) => targetOf(`/proc/${pid}/fd/${fd}`) === join(dataDir, 'spawner.lock'),
        )
      )
        return Number(pid);
    } catch {}
  }
  return undefined;
};

const targetOf = (link: string): string | undefined => {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
};

const strike = async (daemon: DaemonUnderTest, victim: Victim): Promise<void> => {
  if (victim !== 'daemon')
    process.kill(await within('a spawner', () => spawnerPid(daemon.dataDir)), 'SIGKILL');
  if (victim !== 'spawner') await daemon.kill();
};

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
