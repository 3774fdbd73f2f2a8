import { Child } from '../child.ts';
import { inPairs, type Bench } from '../figure.ts';
import { rowOf, type Measure } from '../measure.ts';
import { pause } from '../process-facts.ts';
import { countsIn, type Service } from '../service.ts';
import { quantile } from '../statistics.ts';
import type { Flood } from './floods.ts';
import type { NoisyTerms } from './noisy-tenant.ts';
import type { NoisyAnswers, NoisyOrder } from './process.ts';

/** Both tenants, and the daemon between them. */
export interface Neighbourhood {
  readonly quiet: Service;
  readonly quietSource: object;
  readonly noisy: NoisyTerms;
  readonly calm: () => Promise<void>;
}

const POOL = 'quiet';
/** One sandbox, which the quiet tenant uses a little. */
const OWN_POOL = 'quiet-own';
const IDLE = 40;
/** Once in this many requests. */
const CLAIM_EVERY = 20;
const REQUESTS = 720;
const PER_SECOND = 180;
/** Given back at once, to see how soon their successors are idle. */
const BURST = 8;
const ONSET_MS = 1_000;
const REFILL_DEADLINE_MS = 15_000;
const MOST_ROUNDS = 3;
const LOOK_EVERY_MS = 5;
const UNHURRIED_MS = 250;
const [P99, REFILL] = [
  { reach: 3, beyond: 1.5 },
  { reach: 2.5, beyond: 1.5 },
];

interface Side {
  readonly getMs: number;
  readonly claimMs: number;
  readonly refillMs: number;
  readonly refused: readonly string[];
}

/** With and without the flood, in turn. */
export const beside = async (
  bench: Bench,
  flood: Flood,
  { quiet, quietSource, noisy, calm }: Neighbourhood,
): Promise<readonly Measure[]> => {
  await using other = new Child<NoisyOrder, NoisyAnswers>('neighbours/process');
  const body = JSON.stringify({ name: POOL, replicas: IDLE, ...quietSource });
  await quiet.call({ method: 'POST', path: '/sandboxpools', body }, 201);
  await quiet.untilIdle(POOL, IDLE);
  await quiet.createFullPool(OWN_POOL, 1, noisy.template);
  const own = await quiet.claim(OWN_POOL);
  await other.ask({ kind: 'prepare', flood: flood.name, terms: noisy });
  const alone = async (): Promise<Side> => {
    await calm();
    const side = await sideOf(bench, quiet, own);
    if (side.refillMs >= REFILL_DEADLINE_MS || side.refused.length > 0)
      throw new Error(
        `the other tenant is not served when it is alone: ${side.refused[0] ?? 'its pool does not fill in time'}`,
      );
    return side;
  };
  const flooded = async (): Promise<Side> => {
    await calm();
    await other.ask({ kind: 'begin' });
    await pause(ONSET_MS);
    const side = await sideOf(bench, quiet, own);
    const statuses = await other.ask({ kind: 'end' });
    bench.say(
      `the noisy tenant's answers so far: ${JSON.stringify(statuses)}${side.refused.length === 0 ? '' : `; the other's refusals: ${side.refused.slice(0, 5).join('; ')}`}`,
    );
    return side;
  };
  await alone(); // warms up
  const pairs = await inPairs(
    { rounds: Math.min(bench.rounds, MOST_ROUNDS) },
    { ours: flooded, theirs: alone },
  );
  const named = (what: string): string => `${what} beside ${flood.name} / alone`;
  return [
    rowOf({ name: named('GET p99'), ...P99 }, pairs, ({ getMs }) => getMs),
    rowOf({ name: named('claim p99'), ...P99 }, pairs, ({ claimMs }) => claimMs),
    rowOf({ name: named('refill'), ...REFILL }, pairs, ({ refillMs }) => refillMs),
    rowOf(
      { name: `refused beside ${flood.name}`, unit: '', reach: 0, beyond: 0 },
      { ours: pairs.ours },
      ({ refused }) => refused.length,
    ),
  ];
};

/** Reads and claims by the clock; then a burst, and how soon the pool is full again. */
const sideOf = async (bench: Bench, service: Service, own: string): Promise<Side> => {
  const refused: string[] = [];
  await untilFull(service, refused);
  const get = { method: 'GET', path: `/sandboxpools/${POOL}` };
  const claim = { method: 'POST', path: '/sandboxes', body: JSON.stringify({ poolName: POOL }) };
  const asks = service.keyed(
    Array.from({ length: REQUESTS }, (_, n) => (isClaim(n) ? claim : get)),
  );
  let over = false;
  const unhurried = aLittleOfAll(service, { own, refused, over: () => over });
  const { latencies, statuses, bodies } = await bench.load
    .open(service.port, asks, PER_SECOND)
    .finally(() => {
      over = true;
    });
  await unhurried;
  statuses.forEach((status, n) => {
    if (status >= 300) refused.push(`${asks[n]?.method} ${status} ${bodies[n]?.slice(0, 120)}`);
  });
  await endAll(bench, service, {
    claims: bodies.filter((_, n) => isClaim(n) && statuses[n] === 201),
    refused,
  });
  const refillMs = await refill(bench, service, refused);
  const p99 = (which: (n: number) => boolean): number =>
    quantile(
      latencies.filter((_, n) => which(n)),
      0.99,
    );
  return { getMs: p99((n) => !isClaim(n)), claimMs: p99(isClaim), refillMs, refused };
};

const isClaim = (n: number): boolean => n % CLAIM_EVERY === 0;

/** Until the pool is full again, or the deadline. */
const refill = async (bench: Bench, service: Service, refused: string[]): Promise<number> => {
  if (!(await untilFull(service, refused))) return REFILL_DEADLINE_MS;
  const burst = await bench.load.closed(service.port, service.claims(POOL, BURST), BURST);
  burst.statuses.forEach((status, n) => {
    if (status !== 201) refused.push(`claim ${status} ${burst.bodies[n]?.slice(0, 120)}`);
  });
  await endAll(bench, service, {
    claims: burst.bodies.filter((_, n) => burst.statuses[n] === 201),
    refused,
  });
  const began = performance.now();
  await untilFull(service, refused);
  return performance.now() - began;
};

const untilFull = async (service: Service, refused: string[]): Promise<boolean> => {
  const get = { method: 'GET', path: `/sandboxpools/${POOL}` };
  const deadline = performance.now() + REFILL_DEADLINE_MS;
  while (performance.now() < deadline) {
    const { status, body } = await service.answerTo(get);
    if (status !== 200) refused.push(`GET ${status} ${body.slice(0, 120)}`);
    else if ((countsIn(body)['idleReplicas'] ?? 0) >= IDLE) return true;
    await pause(LOOK_EVERY_MS);
  }
  return false;
};

const endAll = async (
  bench: Bench,
  service: Service,
  { claims, refused }: { readonly claims: readonly string[]; readonly refused: string[] },
): Promise<void> => {
  const ids = claims.map(
    (body) =>
      (JSON.parse(body) as { readonly sandbox: { readonly sandboxId: string } }).sandbox.sandboxId,
  );
  const asks = service.keyed(ids.map((id) => ({ method: 'DELETE', path: `/sandboxes/${id}` })));
  const { statuses, bodies } = await bench.load.closed(service.port, asks, BURST);
  statuses.forEach((status, n) => {
    if (status !== 200) refused.push(`DELETE ${status} ${bodies[n]?.slice(0, 120)}`);
  });
};

/** Tokens, commands, kept answers, previews. Counts refusals, and no times. */
const aLittleOfAll = async (
  service: Service,
  {
    own,
    refused,
    over,
  }: { readonly own: string; readonly refused: string[]; readonly over: () => boolean },
): Promise<void> => {
  for (let n = 0; !over(); n += 1) {
    for (const ask of [
      { method: 'POST', path: `/sandboxes/${own}/exec-token`, body: '{}' },
      { method: 'POST', path: `/sandboxes/${own}/exec`, body: '{"command":["/bin/echo","here"]}' },
      {
        method: 'PUT',
        path: `/sandboxes/${own}/idle-timeout`,
        body: '{"idleTimeout":"1h"}',
        idempotencyKey: `quiet-${process.pid}-${performance.now()}`,
      },
      { method: 'POST', path: `/sandboxpools/${POOL}/sync-template/preview`, body: '{}' },
    ]) {
      const answer = await service.answerTo(ask);
      if (answer.status >= 300)
        refused.push(
          `${ask.method} ${ask.path.replace(own, 'ID')} ${answer.status} ${answer.body.slice(0, 120)}`,
        );
      await pause(UNHURRIED_MS);
    }
  }
};
