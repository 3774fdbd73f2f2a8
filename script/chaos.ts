import { envKillRounds } from '../test/support/chaos/env-kill-rounds.ts';
import { killRounds } from '../test/support/chaos/kill-rounds.ts';

const [rounds = '100', seedText = ''] = process.argv.slice(2);
const seed = seedText === '' ? Math.floor(Math.random() * 2 ** 32) : Number(seedText);
console.log(`${rounds} rounds, seed ${seed}`);
const damage = await killRounds({
  rounds: Number(rounds),
  seed,
  onRound: (round, victim, { claims, deletes, running }) => {
    console.log(
      `round ${round + 1}: killed ${victim}; ${claims} claims and ${deletes} deletes acknowledged, ${running} running afterwards`,
    );
  },
});
for (const detail of damage.details) console.log(detail);
console.log(
  `lost ${damage.lost}, owned twice ${damage.ownedTwice}, orphans ${damage.orphans}, dead ${damage.dead}`,
);
/** Of the rounds, as many more have envs. */
const ENV_SHARE = 0.25;
const envRounds = Math.ceil(Number(rounds) * ENV_SHARE);
const error = await envKillRounds({
  rounds: envRounds,
  seed,
  onRound: (round, held) => {
    console.log(`round ${round + 1} of envs: killed daemon; ${held} claims held`);
  },
}).then(
  () => undefined,
  (reason: unknown) => reason,
);
console.log(
  ...(error === undefined ? [`${envRounds} rounds of envs: nothing lost`] : ['envs:', error]),
);
process.exitCode =
  damage.details.length === 0 && damage.ownedTwice === 0 && error === undefined ? 0 : 1;
