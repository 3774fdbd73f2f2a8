/**
 * Each leg is a process with its own cluster, seed and verdict, so that memory and disk stay
 * bounded. With the same folder and seed, continues after the last leg.
 */
import { fork } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chaosRun, type ChaosReport } from '../test/support/chaos/chaos-run.ts';
import { keepEvidence, keptEvidence } from '../test/support/chaos/kept-evidence.ts';
import { violationsOf } from '../test/support/chaos/verdict.ts';

const LEG_CLAIMS = 5_000;
const LEG_MS = 2 * 3_600_000;
/** In every third leg. */
const MANY_REPLICAS = 5;
const FEW_REPLICAS = 3;
const MOST_SHOWN = 40;

interface Leg {
  readonly seed: number;
  readonly claims: number;
  readonly faults: number;
  readonly replicas: number;
  readonly kinds: string;
}

interface Outcome {
  readonly seed: number;
  readonly replicas: number;
  readonly claims: number;
  readonly calls: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: Readonly<Record<string, number>>;
  /** Enough claims and faults. */
  readonly isWhole: boolean;
}

/** The first Ctrl-C judges what was reached. The next, or any other signal, ends all at once. */
const enough = new AbortController();
process.once('SIGINT', () => {
  if (process.send === undefined)
    console.log(
      'no more load and faults; what was reached is judged, which takes some minutes (once more: it ends at once)',
    );
  enough.abort();
});
/** The signal may have been for the parent only. */
process.on('message', () => {
  enough.abort();
});
process.channel?.unref();

/** A leg ends with its parent. */
process.once('disconnect', () => {
  process.exit(1);
});

const main = async (args: readonly string[]): Promise<number> => {
  const [first = '20000', ...rest] = args;
  if (first === 'leg') return await oneLeg(JSON.parse(rest[0] ?? '') as Leg, rest[1] ?? '');
  if (first === 'judge') return await judge(rest[0] ?? '');
  const [faults = '60', seedText = '', kinds = '', given = ''] = rest;
  const seed = seedText === '' ? Math.floor(Math.random() * 2 ** 32) : Number(seedText);
  const folder = given === '' ? mkdtempSync(join(tmpdir(), 'sandpool-chaos-')) : given;
  mkdirSync(folder, { recursive: true });
  console.log(`${first} claims and ${faults} faults, seed ${seed}, in ${folder}`);
  const legs = legsOf({ claims: Number(first), faults: Number(faults), seed, kinds });
  for (const [n, leg] of legs.entries()) {
    if (enough.signal.aborted) break;
    await run(leg, {
      folder: join(folder, `leg-${leg.seed}`),
      title: `leg ${n + 1} of ${legs.length}`,
    });
  }
  return summary(legs, folder);
};

const legsOf = ({ claims, faults, seed, kinds }: Omit<Leg, 'replicas'>): readonly Leg[] => {
  const count = Math.max(1, Math.ceil(claims / LEG_CLAIMS));
  const share = (all: number, n: number): number =>
    Math.floor((all * (n + 1)) / count) - Math.floor((all * n) / count);
  return Array.from({ length: count }, (_, n) => ({
    seed: (seed + n) >>> 0,
    claims: share(claims, n),
    faults: share(faults, n),
    kinds,
    replicas: n % 3 === 2 ? MANY_REPLICAS : FEW_REPLICAS,
  }));
};

const outcomeOf = (folder: string): Outcome | undefined => {
  const file = join(folder, 'outcome.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Outcome) : undefined;
};

const run = async (
  leg: Leg,
  { folder, title }: { readonly folder: string; readonly title: string },
): Promise<void> => {
  if (outcomeOf(folder)?.isWhole) {
    console.log(`${title}, seed ${leg.seed}: done before`);
    return;
  }
  console.log(
    `${title}: seed ${leg.seed}, ${leg.claims} claims, ${leg.faults} faults, ${leg.replicas} replicas`,
  );
  const child = fork(fileURLToPath(import.meta.url), ['leg', JSON.stringify(leg), folder], {
    stdio: 'inherit',
  });
  const tell = (): void => {
    child.send('enough');
  };
  enough.signal.addEventListener('abort', tell);
  await new Promise((resolve) => {
    child.once('exit', resolve);
  });
  enough.signal.removeEventListener('abort', tell);
};

const oneLeg = async (
  { seed, claims, faults, kinds, replicas }: Leg,
  folder: string,
): Promise<number> => {
  const report = await chaosRun({
    seed,
    claims,
    faults,
    replicas,
    atMostMs: LEG_MS,
    kinds: kinds === '' ? undefined : kinds.split(','),
    enough: enough.signal,
    onStrike: (line) => {
      console.log(line);
    },
  });
  console.table(countsOf(report));
  for (const { promise, what } of report.violations.slice(0, MOST_SHOWN))
    console.log(`${promise}: ${what.slice(0, 1_000)}`);
  mkdirSync(folder, { recursive: true });
  if (report.violations.length > 0) {
    await keepEvidence(folder, report);
    console.log(`what is known of it: ${folder}`);
  }
  const outcome: Outcome = {
    seed,
    replicas,
    claims: report.claims,
    calls: report.calls,
    faults: counted(report.disturbances.map(({ kind }) => kind)),
    violations: counted(report.violations.map(({ promise }) => promise)),
    isWhole: report.claims >= claims && report.disturbances.length >= faults,
  };
  writeFileSync(join(folder, 'outcome.json'), JSON.stringify(outcome, undefined, 1));
  console.log(
    `seed ${seed}: ${report.claims} claims acknowledged, ${report.disturbances.length} faults, ${report.calls} calls, ${report.evidence.changes.length} changes of the store: ${report.violations.length} violations`,
  );
  return report.violations.length === 0 && outcome.isWhole ? 0 : 1;
};

/** Once more, on kept evidence. */
const judge = async (folder: string): Promise<number> => {
  const violations = violationsOf(await keptEvidence(folder));
  for (const { promise, what } of violations.slice(0, MOST_SHOWN))
    console.log(`${promise}: ${what.slice(0, 1_000)}`);
  console.log(`${violations.length} violations`);
  return violations.length === 0 ? 0 : 1;
};

const summary = (legs: readonly Leg[], folder: string): number => {
  const outcomes = legs.map(({ seed }) => outcomeOf(join(folder, `leg-${seed}`)));
  const known = outcomes.filter((outcome) => outcome !== undefined);
  const total = (of: (outcome: Outcome) => number): number =>
    known.reduce((all, outcome) => all + of(outcome), 0);
  const faults = added(known.map((outcome) => outcome.faults));
  const violations = added(known.map((outcome) => outcome.violations));
  console.log('\nfaults by kind');
  console.table(faults);
  if (sum(violations) > 0) {
    console.log('violations by promise');
    console.table(violations);
    console.log(
      `seeds with violations: ${known.flatMap((outcome) => (sum(outcome.violations) > 0 ? [outcome.seed] : [])).join(' ')}`,
    );
  }
  const unfinished = legs.filter((_, n) => outcomes[n]?.isWhole !== true).map(({ seed }) => seed);
  console.log(
    `seeds: ${legs.map(({ seed }) => seed).join(' ')}${unfinished.length === 0 ? '' : `; not finished: ${unfinished.join(' ')}`}`,
  );
  console.log(
    `${total(({ claims }) => claims)} claims acknowledged, ${sum(faults)} faults, ${total(({ calls }) => calls)} calls in ${known.length} legs: ${sum(violations)} violations`,
  );
  return sum(violations) === 0 && unfinished.length === 0 ? 0 : 1;
};

const counted = (names: readonly string[]): Readonly<Record<string, number>> =>
  added(names.map((name) => ({ [name]: 1 })));

const added = (
  all: readonly Readonly<Record<string, number>>[],
): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const one of all)
    for (const [name, count] of Object.entries(one)) counts[name] = (counts[name] ?? 0) + count;
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => a.localeCompare(b)));
};

const sum = (counts: Readonly<Record<string, number>>): number =>
  Object.values(counts).reduce((all, count) => all + count, 0);

const countsOf = ({ evidence }: ChaosReport): Readonly<Record<string, number>> =>
  counted(
    evidence.calls.map(
      ({ asked, answer }) =>
        `${asked.what}: ${answer ? `${answer.status} ${answer.errorCode ?? answer.shows ?? ''}` : 'unknown'}`,
    ),
  );

process.exitCode = await main(process.argv.slice(2));
