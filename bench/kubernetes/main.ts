import type { Figure } from '../figure.ts';
import { runFigures } from '../run-figures.ts';
import { endLiving } from './cluster.ts';
import { approvals } from './figures/approvals.ts';
import { claim } from './figures/claim.ts';
import { conflicts } from './figures/conflicts.ts';
import { history } from './figures/history.ts';
import { kill } from './figures/kill.ts';
import { led } from './figures/led.ts';
import { looksOfTen, looksOfThree } from './figures/looks.ts';
import { neighbours } from './figures/neighbours.ts';
import { paused } from './figures/paused.ts';
import { realNode } from './figures/real-node.ts';
import { realNodePools } from './figures/real-node-pools.ts';
import { recount } from './figures/recount.ts';
import { refill } from './figures/refill.ts';
import { refused } from './figures/refused.ts';
import { revoked } from './figures/revoked.ts';
import { rolling } from './figures/rolling.ts';
import { scale } from './figures/scale.ts';
import { scaling } from './figures/scaling.ts';
import { takeover } from './figures/takeover.ts';
import { tenants } from './figures/tenants.ts';
import { throughput } from './figures/throughput.ts';
import { waiting } from './figures/waiting.ts';
import { writes } from './figures/writes.ts';

const FIGURES: readonly Figure[] = [
  writes,
  claim,
  throughput,
  conflicts,
  scale,
  refill,
  takeover,
  kill,
  rolling,
  paused,
  led,
  refused,
  tenants,
  revoked,
  approvals,
  waiting,
  ...neighbours,
  scaling,
  looksOfThree,
  looksOfTen,
  history,
  recount,
];
const programs = process.env['TEST_REAL_NODE'];

await runFigures({
  figures: programs === undefined ? FIGURES : [realNode(programs), realNodePools(programs)],
  arguments: process.argv.slice(2),
  deadlineMs: 1_200_000,
  endLiving,
});
