import { endLiving } from './daemon.ts';
import { burst } from './figures/burst.ts';
import { claim } from './figures/claim.ts';
import { e2b } from './figures/e2b.ts';
import { exec } from './figures/exec.ts';
import { files } from './figures/files.ts';
import { fill } from './figures/fill.ts';
import { fleet } from './figures/fleet.ts';
import { memory } from './figures/memory.ts';
import { neighbours } from './figures/neighbours.ts';
import { overload } from './figures/overload.ts';
import { start } from './figures/start.ts';
import { tenants } from './figures/tenants.ts';
import { throughput } from './figures/throughput.ts';
import { runFigures } from './run-figures.ts';

await runFigures({
  figures: [
    claim,
    throughput,
    fill,
    burst,
    exec,
    files,
    e2b,
    fleet,
    tenants,
    memory,
    start,
    overload,
    ...neighbours,
  ],
  arguments: process.argv.slice(2),
  deadlineMs: 600_000,
  endLiving,
});
