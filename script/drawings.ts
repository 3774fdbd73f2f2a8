/**
 * Draws the machines' state charts as SVG, for `GET /debug/machines`: writes
 * src/actors/inspection/drawings/*.svg, which are made at each build and not kept in git. A drawing
 * has `@n@` for how many actors are in the n-th state. What is fresh is left as it is.
 */
import { fileURLToPath } from 'node:url';
import { instance } from '@viz-js/viz';
import { MACHINES } from '../src/actors/inspection/machines.ts';
import { writeFiles } from './generated-files.ts';
import { dotOf } from './machine-dot.ts';

const FOLDER = 'src/actors/inspection/drawings/';

/** Returns each drawing by its path, without comments and what only a file of its own needs. */
export const drawings = async (): Promise<ReadonlyMap<string, string>> => {
  const viz = await instance();
  return new Map(
    Object.entries(MACHINES).map(([kind, machine]) => [
      `${FOLDER}${kind}.svg`,
      viz
        .renderString(dotOf(machine), { format: 'svg' })
        .replace(/^[^]*?(?=<svg)/, '')
        .replaceAll(/<!--[^]*?-->|<title>[^]*?<\/title>/g, '')
        .replaceAll(/\n+/g, ''),
    ]),
  );
};

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFiles(await drawings());
