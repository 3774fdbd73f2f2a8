import { runFigures } from '../run-figures.ts';
import { endLiving } from './cluster.ts';
import { claim } from './figures/claim.ts';
import { files } from './figures/files.ts';
import { neighbours } from './figures/neighbours.ts';
import { scale } from './figures/scale.ts';
import { takeover } from './figures/takeover.ts';

await runFigures({
  figures: [claim, files, scale, takeover, ...neighbours],
  arguments: process.argv.slice(2),
  deadlineMs: 1_200_000,
  endLiving,
});
