import { SCALE_UP_MODES } from '../src/model/envs/autoscaling-group.ts';
import { plotOf } from './plot.ts';
import { PRINCIPALS, SCENARIOS, settingOf, type Scenario } from './scenarios.ts';
import { simulate } from './world.ts';

/** The scenarios that docs/autoscaling.md shows. */
export const PLOTTED: readonly Scenario[] = SCENARIOS.filter(({ name }) =>
  ['daily-wave', 'bursts'].includes(name),
);

/** The plots of docs/autoscaling.md, by path (script/generate autoscaling-plots). */
export const autoscalingPlots = (scenarios = PLOTTED): ReadonlyMap<string, string> =>
  new Map(
    scenarios.map((scenario) => [`docs/autoscaling/${scenario.name}.svg`, plotOfDay(scenario)]),
  );

/** A day of a scenario in each of the three modes, with the first seed, as the page shows it. */
const plotOfDay = (scenario: Scenario): string =>
  plotOf(
    scenario.title,
    SCALE_UP_MODES.map((mode) => {
      const summary = simulate(
        settingOf(scenario, { mode, seed: 1, waitSeconds: 0, hours: 24, principals: PRINCIPALS }),
      );
      const refused = ((100 * summary.refused) / Math.max(1, summary.claims)).toFixed(1);
      return {
        title: `${mode}: ${refused} % refused, ${summary.idleOnAverage.toFixed(1)} idle on average`,
        summary,
      };
    }),
  );
