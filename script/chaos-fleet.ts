import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ControlPlane } from '../local-cluster/control-plane.ts';
import { kindsAmong } from '../test/support/chaos/fault-plan.ts';
import { FleetArena } from '../test/support/chaos/fleet/fleet-arena.ts';
import { FLEET_FAULTS } from '../test/support/chaos/fleet/fleet-faults.ts';
import { fleetChaosRun, type FleetChaosReport } from '../test/support/chaos/fleet/fleet-run.ts';

const [claims = '20000', faults = '300', seedText = '', named = ''] = process.argv.slice(2);
const kinds = named === '' ? FLEET_FAULTS : kindsAmong(FLEET_FAULTS, named.split(','));
const seed = seedText === '' ? Math.floor(Math.random() * 2 ** 32) : Number(seedText);
const MOST_SHOWN = 40;
const AT_MOST_MS = 3 * 3_600_000;

/** The first Ctrl-C judges what was reached. */
const enough = new AbortController();
process.once('SIGINT', () => {
  console.log('no more load and faults; what was reached is judged');
  enough.abort();
});

const counted = (names: readonly string[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const name of names.toSorted()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
};

const keep = (report: FleetChaosReport): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sandpool-chaos-fleet-'));
  mkdirSync(folder, { recursive: true });
  const { evidence, logs, ...rest } = report;
  writeFileSync(join(folder, 'report.json'), JSON.stringify(rest, undefined, 1));
  writeFileSync(
    join(folder, 'calls.jsonl'),
    evidence.calls.map((call) => `${JSON.stringify(call)}\n`).join(''),
  );
  writeFileSync(join(folder, 'known.json'), JSON.stringify(evidence.known));
  writeFileSync(join(folder, 'envs.json'), JSON.stringify(evidence.envs));
  for (const [name, log] of Object.entries(logs)) writeFileSync(join(folder, `${name}.log`), log);
  return folder;
};

console.log(`${claims} claims and ${faults} faults over a fleet, seed ${seed}`);
const undo: (() => Promise<unknown>)[] = [];
const underChaos = async (): Promise<FleetChaosReport> => {
  const [manager, worker] = [await ControlPlane.start(), ControlPlane.start()];
  undo.push(() => manager.stop());
  undo.push(async () => await (await worker).stop());
  const arena = await FleetArena.start({
    ...{ poolReplicas: 12, memberReplicas: 6, grounds: { manager, worker } },
  });
  undo.push(() => arena.stop());
  return await fleetChaosRun(arena, {
    seed,
    kinds,
    claims: Number(claims),
    faults: Number(faults),
    atMostMs: AT_MOST_MS,
    clients: 12,
    longestMs: 4_000,
    keysWithinMs: 10_000,
    linkedWithinMs: 10_000,
    enough: enough.signal,
    onStrike: (line) => console.log(line),
  });
};
let report: FleetChaosReport;
try {
  report = await underChaos();
} finally {
  for (const step of undo.toReversed()) await step();
}
const { violations, disturbances, evidence, keys } = report;
console.table(counted(disturbances.map(({ kind }) => kind)));
console.table(
  counted(
    evidence.calls.map(
      ({ asked, answer }) =>
        `${asked.what}: ${answer ? `${answer.status} ${answer.errorCode ?? ''}` : 'unknown'}`,
    ),
  ),
);
for (const { promise, what } of violations.slice(0, MOST_SHOWN))
  console.log(`${promise}: ${what.slice(0, 1_000)}`);
if (violations.length > 0) console.log(`what is known of it: ${keep(report)}`);
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
console.log(
  `each replica linked to each worker ${seconds(evidence.linked.afterMs)} after the last fault; ` +
    `${keys.promoted} promoted keys, ${keys.revoked} of them revoked: the last wrong answer of any address ` +
    `after ${seconds(keys.wrongMs)}, each tried everywhere within ${seconds(keys.triedMs)}`,
);
console.log(
  `seed ${seed}: ${report.claims} claims acknowledged, ${disturbances.length} faults, ${evidence.calls.length} calls: ${violations.length} violations`,
);
process.exitCode =
  violations.length === 0 &&
  report.claims >= Number(claims) &&
  disturbances.length >= Number(faults)
    ? 0
    : 1;
