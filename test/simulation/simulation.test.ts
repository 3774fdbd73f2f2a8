import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';
import { staleFiles } from '../../script/generated-files.ts';
import { momentsOf } from '../../simulation/demand.ts';
import { autoscalingPlots, PLOTTED } from '../../simulation/plots.ts';
import {
  PRINCIPALS,
  SCENARIOS,
  settingOf,
  type Choice,
  type Scenario,
} from '../../simulation/scenarios.ts';
import { simulate } from '../../simulation/world.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const named = (name: string): Scenario => {
  const found = SCENARIOS.find((scenario) => scenario.name === name);
  if (!found) throw new Error(`no scenario ${name}`);
  return found;
};

const aChoice = (parts: Partial<Choice> = {}): Choice => ({
  mode: 'Moderate',
  seed: 1,
  waitSeconds: 0,
  hours: 3,
  principals: PRINCIPALS,
  ...parts,
});

/** A change of the rules or of the drawing shows in the cheapest; the long suites draw all. */
const DRAWN = process.env['TEST_LONG'] === '1' ? PLOTTED : [named('bursts')];

describe('the simulation of autoscaling', function () {
  it('draws the plots as docs/autoscaling.md shows them', function () {
    const stale = staleFiles(autoscalingPlots(DRAWN));

    expect(stale, 'script/generate autoscaling-plots writes them').to.deep.equal([]);
  });

  it('has the same result for the same seed', () => {
    expect(simulate(settingOf(named('bursts'), aChoice()))).to.deep.equal(
      simulate(settingOf(named('bursts'), aChoice())),
    );
  });

  it('refuses fewer claims with more idle instances', () => {
    const [careful, eager] = (['Conservative', 'Aggressive'] as const).map((mode) =>
      simulate(settingOf(named('steady'), aChoice({ mode, hours: 12 }))),
    );

    expect(careful?.refused ?? 0).to.be.above(eager?.refused ?? 0);
    expect(careful?.idleOnAverage ?? 0).to.be.below(eager?.idleOnAverage ?? 0);
  });

  it('refuses almost none of a burst if claims can wait', () => {
    const { claims, refused } = simulate(
      settingOf(named('bursts'), aChoice({ mode: 'Aggressive', waitSeconds: 30, hours: 6 })),
    );

    expect(refused / claims).to.be.below(0.02);
  });

  it('shrinks to nothing without claims, and grows again', () => {
    const { samples } = simulate(settingOf(named('to-zero'), aChoice({ hours: 10 })));

    expect(samples.filter(({ at }) => at < 8 * 3_600_000).at(-1)?.desired).to.equal(0);
    expect(samples.at(-1)?.desired).to.be.above(5);
  });

  it('keeps trying while nothing starts, and recovers', () => {
    const { samples, decisions } = simulate(settingOf(named('refusing'), aChoice({ hours: 10 })));

    expect(decisions, 'no more than a few a minute').to.be.below(10 * 60 * 3);
    expect(samples.at(-1)?.running).to.be.above(5);
  });

  it("stays within the owner's latest settings", () => {
    const { samples } = simulate(settingOf(named('edits'), aChoice({ hours: 24 })));

    expect(Math.max(...samples.map(({ desired }) => desired))).to.be.at.most(60);
  });
});

describe('recorded demand', () => {
  it('is read as timestamps or seconds, in any order, from its first entry on', () => {
    expect(momentsOf('# claims\n12.5\n\n10\n')).to.deep.equal([0, 2_500]);
    expect(momentsOf('2026-01-01T00:00:01Z\n2026-01-01T00:00:00Z\n')).to.deep.equal([0, 1_000]);
  });

  it('is refused with the line number of an invalid entry', () => {
    expect(() => momentsOf('1\nsoon\n')).to.throw(
      'line 2: "soon" is neither a timestamp nor seconds',
    );
  });

  it('is simulated from a file', function () {
    const folder = mkdtempSync(join(tmpdir(), 'demand-'));
    try {
      writeFileSync(
        join(folder, 'demand.txt'),
        Array.from({ length: 100 }, (_, index) => index * 10).join('\n'),
      );
      const { status, stdout, stderr } = run(
        '--demand',
        join(folder, 'demand.txt'),
        '--seeds',
        '1',
        '--mode',
        'moderate',
        '--plot',
        folder,
      );
      expect({ status, stderr }).to.deep.equal({ status: 0, stderr: '' });
      expect(stdout).to.match(/recorded \| Moderate +\|.*\| +100 \|/);
      expect(readdirSync(folder)).to.include('recorded.svg');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const run = (
  ...args: readonly string[]
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', 'simulation/main.ts', ...args],
    { cwd: ROOT, encoding: 'utf8', timeout: NEVER_COMES_MS },
  );
  return { status, stdout, stderr };
};
