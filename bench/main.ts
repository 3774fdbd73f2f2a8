import { existsSync } from 'node:fs';
import { endLiving } from './daemon.ts';
import type { Figure } from './figure.ts';
import { approvals } from './figures/approvals.ts';
import { buildsAgainst } from './figures/builds.ts';
import { burst } from './figures/burst.ts';
import { claim } from './figures/claim.ts';
import { conventions } from './figures/conventions.ts';
import { cp } from './figures/cp.ts';
import { e2b } from './figures/e2b.ts';
import { echo } from './figures/echo.ts';
import { endpoint } from './figures/endpoint.ts';
import { envs } from './figures/envs.ts';
import { exec } from './figures/exec.ts';
import { files } from './figures/files.ts';
import { fill } from './figures/fill.ts';
import { fleet } from './figures/fleet.ts';
import { furnished } from './figures/furnished.ts';
import { growth } from './figures/growth.ts';
import { help } from './figures/help.ts';
import { idle } from './figures/idle.ts';
import { image } from './figures/image.ts';
import { inside } from './figures/inside.ts';
import { list } from './figures/list.ts';
import { loop } from './figures/loop.ts';
import { memory } from './figures/memory.ts';
import { neighbours } from './figures/neighbours.ts';
import { overload } from './figures/overload.ts';
import { pause } from './figures/pause.ts';
import { processes } from './figures/processes.ts';
import { revoked } from './figures/revoked.ts';
import { rollout } from './figures/rollout.ts';
import { scaling } from './figures/scaling.ts';
import { scheduler } from './figures/scheduler.ts';
import { series } from './figures/series.ts';
import { slow } from './figures/slow.ts';
import { telling } from './figures/telling.ts';
import { tenants } from './figures/tenants.ts';
import { throughput } from './figures/throughput.ts';
import { waiting } from './figures/waiting.ts';
import { runFigures } from './run-figures.ts';

const FIGURES: readonly Figure[] = [
  claim,
  throughput,
  fill,
  burst,
  exec,
  loop,
  memory,
  echo,
  ...neighbours,
  growth,
  image,
  endpoint,
  help,
  conventions,
  list,
  overload,
  slow,
  tenants,
  approvals,
  scheduler,
  revoked,
  rollout,
  waiting,
  envs,
  scaling,
  series,
  telling,
  inside,
  idle,
  ...processes,
  ...e2b,
  ...fleet,
  files,
  cp,
  furnished,
  pause,
];

const given = process.argv.slice(2);
const at = given.indexOf('--against');
const [, against = ''] = at < 0 ? [] : given.splice(at, 2);
if (at >= 0 && !existsSync(`${against}/dist/cli/main.js`)) {
  process.stderr.write('--against takes the root folder of a build, which has dist/cli/main.js\n');
  process.exit(2);
}

await runFigures({
  figures: at < 0 ? FIGURES : buildsAgainst(against),
  arguments: given,
  deadlineMs: 300_000,
  endLiving,
});
