import { commandDaemon } from '../src/cli/control.ts';
import type { Bench } from './figure.ts';
import type { Measure } from './measure.ts';
import { quantile } from './statistics.ts';

/** Clients that wait for a decision, one after the other. */
const WAITS = 20;
const WARM_UP = 3;

export interface DecidedAt {
  /** Of a daemon that listens at the first of the ports. */
  readonly dataDir: string;
  /** Of the replicas; one holds the line, and the next one is where it is decided. */
  readonly ports: readonly number[];
  /** Of a user who has to be approved to make API keys. */
  readonly key: string;
}

/** From the moment at which a decision is sent until the client that waits has its answer. */
export const decisions = async (bench: Bench, at: DecidedAt): Promise<Measure> => {
  const session = await consoleSession(at);
  const known = new Set<string>();
  const round = async (name: string, waits: number): Promise<number> => {
    const took: number[] = [];
    for (let n = 0; n < waits; n += 1)
      took.push(await decision(at, session, { name: `${name}-${n}`, n, known }));
    return quantile(took, 0.5);
  };
  await round('warm-up', WARM_UP);
  const ours: number[] = [];
  for (let n = 0; n < bench.rounds; n += 1) ours.push(await round(`decided-${n}`, WAITS));
  return {
    name: `a decision to the effect for a client that waits${at.ports.length > 1 ? ' at another replica' : ''}, p50`,
    unit: 'ms',
    better: 'less',
    reach: 200,
    beyond: 50,
    ours,
  };
};

const decision = async (
  { ports, key }: DecidedAt,
  session: Headers,
  { name, n, known }: { readonly name: string; readonly n: number; readonly known: Set<string> },
): Promise<number> => {
  const [waitsAt, decidedAt] = [baseOf(ports, n), baseOf(ports, n + 1)];
  const waiting = fetch(`${waitsAt}/api-keys?waitApprovalSeconds=30`, {
    method: 'POST',
    headers: { 'SERVICE-API-KEY': key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ name }),
  });
  const id = await pendingId(decidedAt, session, known);
  known.add(id);
  const began = performance.now();
  const [decided, answer] = await Promise.all([
    fetch(`${decidedAt}/approvals/${id}/decision`, {
      method: 'POST',
      headers: { ...session, Origin: decidedAt, 'Content-Type': 'application/json' },
      body: JSON.stringify({ decision: 'approve' }),
    }),
    waiting,
  ]);
  if (decided.status !== 200 || answer.status !== 201)
    throw new Error(`a decision was ${decided.status}, its request ${answer.status}`);
  return performance.now() - began;
};

type Headers = Readonly<Record<string, string>>;

const baseOf = (ports: readonly number[], n: number): string =>
  `http://127.0.0.1:${ports[n % ports.length]}`;

/** The one that is new: what was decided may be shown as pending for a moment more. */
const pendingId = async (
  base: string,
  headers: Headers,
  known: ReadonlySet<string>,
): Promise<string> => {
  for (let look = 0; look < 1_000; look += 1) {
    const answer = await fetch(`${base}/approvals?status=pending&limit=10`, { headers });
    const { items } = (await answer.json()) as {
      readonly items: readonly { readonly id: string }[];
    };
    const found = items.find(({ id }) => !known.has(id));
    if (found) return found.id;
  }
  throw new Error('the request does not show among those that wait');
};

/** What a person's browser sends, who logged in by a link. */
const consoleSession = async ({ dataDir, ports }: DecidedAt): Promise<Headers> => {
  const base = baseOf(ports, 0);
  const { url } = await commandDaemon(dataDir, '/console/login', {});
  const token = new URL(String(url)).searchParams.get('token') ?? '';
  const entered = await fetch(`${base}/console/link`, {
    method: 'POST',
    headers: { Origin: base, 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token }).toString(),
  });
  const cookie = (entered.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const shown = await fetch(`${base}/console/session`, { headers: { Cookie: cookie } });
  const { csrfToken } = (await shown.json()) as { readonly csrfToken: string };
  return { Cookie: cookie, Origin: base, 'X-CSRF-Token': csrfToken };
};
