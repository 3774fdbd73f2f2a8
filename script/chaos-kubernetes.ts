import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chaosRun, type ChaosReport } from '../test/support/chaos/chaos-run.ts';

const AT_MOST_MS = 3 * 3_600_000;
const MOST_SHOWN = 40;

const [claims = '20000', faults = '60', seedText = '', kinds = ''] = process.argv.slice(2);
const seed = seedText === '' ? Math.floor(Math.random() * 2 ** 32) : Number(seedText);

/** Ctrl-C once: what was reached is judged. Once more, or by any other signal: all of it ends at once, by its watchdog. */
const enough = new AbortController();
process.once('SIGINT', () => {
  console.log('no more load and faults; what was reached is judged, which takes a minute or two (once more: it ends at once)');
  enough.abort();
});

const main = async (): Promise<void> => {
  console.log(`${claims} claims and ${faults} faults, seed ${seed}`);
  const report = await chaosRun({
    seed, claims: Number(claims), faults: Number(faults), atMostMs: AT_MOST_MS, ...(kinds === '' ? {} : { kinds: kinds.split(',') }),
    enough: enough.signal, onStrike: (line) => { console.log(line); },
  });
  console.table(countsOf(report));
  for (const { promise, what } of report.violations.slice(0, MOST_SHOWN)) console.log(`${promise}: ${what.slice(0, 1_000)}`);
  if (report.violations.length > 0) console.log(`what is known of it: ${keep(report)}`);
  console.log(`${report.claims} claims acknowledged, ${report.disturbances.length} faults, ${report.calls} calls, ${report.evidence.changes.length} changes of the store: ${report.violations.length} violations`);
  process.exitCode = report.violations.length === 0 && report.claims >= Number(claims) && report.disturbances.length >= Number(faults) ? 0 : 1;
};

const countsOf = ({ evidence }: ChaosReport): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { asked, answer } of evidence.calls) {
    const row = `${asked.what}: ${answer ? `${answer.status} ${answer.errorCode ?? answer.shows ?? ''}` : 'unknown'}`;
    counts[row] = (counts[row] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).sort(([a], [b]) => a.localeCompare(b)));
};

const keep = ({ evidence, logs, violations }: ChaosReport): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-chaos-'));
  writeFileSync(join(folder, 'evidence.json'), JSON.stringify(evidence));
  writeFileSync(join(folder, 'violations.json'), JSON.stringify(violations, undefined, 1));
  logs.forEach((log, n) => { writeFileSync(join(folder, `replica-${n}.log`), log); });
  return folder;
};

await main();
