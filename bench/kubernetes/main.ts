import type { Figure } from '../figure.ts';
import { runFigures } from '../run-figures.ts';
import { endLiving } from './cluster.ts';
import { claim } from './figures/claim.ts';
import { throughput } from './figures/throughput.ts';
import { writes } from './figures/writes.ts';

const FIGURES: readonly Figure[] = [writes, claim, throughput];

await runFigures({ figures: FIGURES, arguments: process.argv.slice(2), deadlineMs: 900_000, endLiving });
