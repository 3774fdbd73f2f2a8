import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { SCALE_UP_MODES, type ScaleUpMode } from '../src/model/envs/autoscaling-group.ts';
import { momentsOf, recorded } from './demand.ts';
import { plotOf } from './plot.ts';
import {
  HOUR_MS,
  PRINCIPALS,
  SCENARIOS,
  settingOf,
  WARM_UP_MS,
  type Choice,
  type Scenario,
} from './scenarios.ts';
import { tableOf, type Row } from './table.ts';
import { simulate } from './world.ts';

const HELP = `usage: script/simulate [SCENARIO...] [OPTION...]

Runs the autoscaling group's machine and arithmetic against a day of demand, in virtual time, in each mode, and prints for each what
was refused, how many were idle (on average, and in hours), how often it decided and turned round, and how long it took after a miss
until enough were idle again (half of the times, and the longest). One member; starts take 15 s, sandboxes live 300 s on average;
the hour before counts for nothing.

scenarios, without one all but busy:
${SCENARIOS.map(({ name, title }) => `  ${name.padEnd(12)} ${title}`).join('\n')}

  --demand FILE         instead of a scenario: a claim a line, as ISO 8601 or seconds
  --mode MODE           ${SCALE_UP_MODES.join(', ')}; all three
  --principals N        how many claim in turn; one that was refused counts as asked for until it is served; 1000
  --wait SECONDS        how long a claim waits (waitTimeoutSeconds); 0
  --seeds N             how often, each with its own demand; 3
  --hours N             24
  --max N               maxReplicas
  --min N               minReplicas
  --cooldown, --idle-timeout, --stabilization, --protection SECONDS
                        of the group's policies, instead of their defaults
  --plot FOLDER         also writes a plot of each, of the first seed: FOLDER/SCENARIO.svg
  --help
`;

const NUMBERS = {
  principals: 1_000_000,
  wait: 3_600,
  seeds: 100,
  hours: 24 * 31,
  max: 1_000_000,
  min: 1_000_000,
  cooldown: 86_400,
  'idle-timeout': 86_400,
  stabilization: 86_400,
  protection: 86_400,
} as const;

const main = (args: readonly string[]): number => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      demand: { type: 'string' },
      mode: { type: 'string' },
      plot: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
      principals: { type: 'string' },
      wait: { type: 'string' },
      seeds: { type: 'string' },
      hours: { type: 'string' },
      max: { type: 'string' },
      min: { type: 'string' },
      cooldown: { type: 'string' },
      'idle-timeout': { type: 'string' },
      stabilization: { type: 'string' },
      protection: { type: 'string' },
    },
  });
  if (values.help) return said(HELP);
  const number = (name: keyof typeof NUMBERS): number | undefined => numberOf(name, values[name]);
  const modes = SCALE_UP_MODES.filter(
    (mode) => values.mode === undefined || mode.toLowerCase() === values.mode.toLowerCase(),
  );
  if (modes.length === 0) throw new RangeError(`--mode: one of ${SCALE_UP_MODES.join(', ')}`);
  const moments =
    values.demand === undefined ? undefined : momentsOf(readFileSync(values.demand, 'utf8'));
  const scenarios = (
    moments ? [{ ...QUIET, title: values.demand ?? '' }] : chosen(positionals)
  ).map((scenario) => ({
    ...scenario,
    maxReplicas: number('max') ?? scenario.maxReplicas,
    minReplicas: number('min') ?? scenario.minReplicas ?? 0,
  }));
  const hours =
    number('hours') ?? (moments ? Math.max(1, Math.ceil((moments.at(-1) ?? 0) / HOUR_MS)) : 24);
  const choice = {
    waitSeconds: number('wait') ?? 0,
    hours,
    principals: number('principals') ?? PRINCIPALS,
    ...policies(number),
  };
  const run = (scenario: Scenario, mode: ScaleUpMode): Row => ({
    scenario: scenario.name,
    mode,
    wait: choice.waitSeconds,
    summaries: Array.from({ length: number('seeds') ?? 3 }, (_, index) =>
      simulate(
        settingOf(
          scenario,
          { ...choice, mode, seed: index + 1 },
          moments && recorded(moments.map((moment) => moment + WARM_UP_MS)),
        ),
      ),
    ),
  });
  const rows = scenarios.flatMap((scenario) => {
    const ofIt = modes.map((mode) => run(scenario, mode));
    if (values.plot !== undefined)
      save(
        values.plot,
        scenario.name,
        plotOf(
          scenario.title,
          ofIt.flatMap(({ mode, summaries }) =>
            summaries.slice(0, 1).map((summary) => ({ title: mode, summary })),
          ),
        ),
      );
    return ofIt;
  });
  return said(`${tableOf(rows)}\n`);
};

const QUIET: Scenario = { name: 'recorded', title: '', rate: () => 0, peak: 1, maxReplicas: 1_000 };

const chosen = (names: readonly string[]): readonly Scenario[] =>
  names.length === 0
    ? SCENARIOS.filter(({ name }) => name !== 'busy')
    : names.map((name) => {
        const found = SCENARIOS.find((scenario) => scenario.name === name);
        if (!found)
          throw new RangeError(
            `no scenario ${name}: there are ${SCENARIOS.map((scenario) => scenario.name).join(', ')}`,
          );
        return found;
      });

const policies = (number: (name: keyof typeof NUMBERS) => number | undefined): Partial<Choice> => {
  const [cooldownSeconds, idleTimeoutSeconds, stabilizationSeconds, protectionWindowSeconds] = [
    number('cooldown'),
    number('idle-timeout'),
    number('stabilization'),
    number('protection'),
  ];
  return {
    ...(cooldownSeconds === undefined ? {} : { cooldownSeconds }),
    ...(idleTimeoutSeconds === undefined ? {} : { idleTimeoutSeconds }),
    ...(stabilizationSeconds === undefined ? {} : { stabilizationSeconds }),
    ...(protectionWindowSeconds === undefined ? {} : { protectionWindowSeconds }),
  };
};

const numberOf = (name: keyof typeof NUMBERS, text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= NUMBERS[name]) || (value === 0 && ['seeds', 'hours', 'principals'].includes(name)))
    throw new RangeError(`--${name}: a whole number up to ${NUMBERS[name]}`);
  return value;
};

const save = (folder: string, name: string, text: string): void => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.svg`), text);
};

const said = (text: string): number => {
  process.stdout.write(text);
  return 0;
};

try {
  process.exitCode = main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
