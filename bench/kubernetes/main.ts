import type { Figure } from '../figure.ts';
import { runFigures } from '../run-figures.ts';
import { endLiving } from './cluster.ts';
import { claim } from './figures/claim.ts';
import { conflicts } from './figures/conflicts.ts';
import { kill } from './figures/kill.ts';
import { paused } from './figures/paused.ts';
import { refill } from './figures/refill.ts';
import { refused } from './figures/refused.ts';
import { revoked } from './figures/revoked.ts';
import { rolling } from './figures/rolling.ts';
import { scale } from './figures/scale.ts';
import { scaling } from './figures/scaling.ts';
import { tenants } from './figures/tenants.ts';
import { throughput } from './figures/throughput.ts';
import { waiting } from './figures/waiting.ts';
import { writes } from './figures/writes.ts';

const FIGURES: readonly Figure[] = [writes, claim, throughput, conflicts, scale, refill, kill, rolling, paused, refused, tenants, revoked, waiting, scaling];

await runFigures({ figures: FIGURES, arguments: process.argv.slice(2), deadlineMs: 1_200_000, endLiving });
