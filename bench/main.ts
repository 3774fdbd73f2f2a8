import { endLiving } from './daemon.ts';
import type { Figure } from './figure.ts';
import { claim } from './figures/claim.ts';
import { conventions } from './figures/conventions.ts';
import { endpoint } from './figures/endpoint.ts';
import { exec } from './figures/exec.ts';
import { fill } from './figures/fill.ts';
import { growth } from './figures/growth.ts';
import { help } from './figures/help.ts';
import { image } from './figures/image.ts';
import { list } from './figures/list.ts';
import { loop } from './figures/loop.ts';
import { memory } from './figures/memory.ts';
import { neighbours } from './figures/neighbours.ts';
import { overload } from './figures/overload.ts';
import { slow } from './figures/slow.ts';
import { throughput } from './figures/throughput.ts';
import { runFigures } from './run-figures.ts';

const FIGURES: readonly Figure[] = [
  claim, throughput, fill, exec, loop, memory, neighbours, growth, image, endpoint, help, conventions, list, overload, slow,
];

await runFigures({ figures: FIGURES, arguments: process.argv.slice(2), deadlineMs: 300_000, endLiving });
