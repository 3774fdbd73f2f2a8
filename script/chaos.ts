import { approvalKillRounds } from '../test/support/chaos/approval-kill-rounds.ts';
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
const SHARE = 0.25;
const moreRounds = Math.ceil(Number(rounds) * SHARE);
const failureOf = async (what: string, work: Promise<unknown>): Promise<boolean> => {
  try {
    await work;
    console.log(`${moreRounds} rounds of ${what}: nothing lost`);
    return false;
  } catch (error) {
    console.log(`${what}:`, error);
    return true;
  }
};
const envsFailed = await failureOf(
  'envs',
  envKillRounds({
    rounds: moreRounds,
    seed,
    onRound: (round, held) => {
      console.log(`round ${round + 1} of envs: killed daemon; ${held} claims held`);
    },
  }),
);
const approvalsFailed = await failureOf(
  'approvals',
  approvalKillRounds({
    rounds: moreRounds,
    seed,
    onRound: (round, unanswered) => {
      console.log(
        `round ${round + 1} of approvals: killed daemon twice; ${unanswered} answers lost, each grant with one effect`,
      );
    },
  }),
);
process.exitCode =
  damage.details.length > 0 || damage.ownedTwice > 0 || envsFailed || approvalsFailed ? 1 : 0;
