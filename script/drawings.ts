/**
 * Draws the machines' state charts as SVG, for `GET /debug/machines`: writes
 * src/actors/inspection/drawings/*.svg, which are made at each build and not kept in git. A drawing
 * has `@n@` for how many actors are in the n-th state. What is fresh is left as it is.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { instance } from '@viz-js/viz';
import { MACHINES } from '../src/actors/inspection/machines.ts';
import { dotOf } from './machine-dot.ts';

const FOLDER = new URL('../src/actors/inspection/drawings/', import.meta.url);

/** Returns each drawing by its file name, without comments and what only a file of its own needs. */
export const drawings = async (): Promise<ReadonlyMap<string, string>> => {
  const viz = await instance();
  return new Map(
    Object.entries(MACHINES).map(([kind, machine]) => [
      `${kind}.svg`,
      viz
        .renderString(dotOf(machine), { format: 'svg' })
        .replace(/^[^]*?(?=<svg)/, '')
        .replaceAll(/<!--[^]*?-->|<title>[^]*?<\/title>/g, '')
        .replaceAll(/\n+/g, ''),
    ]),
  );
};

/** Returns the names of drawings that are missing or not as they should be. */
export const staleDrawings = async (): Promise<readonly string[]> =>
  [...(await drawings())].filter(([name, svg]) => contentOf(name) !== svg).map(([name]) => name);

const contentOf = (name: string): string | undefined => {
  try {
    return readFileSync(new URL(name, FOLDER), 'utf8');
  } catch {
    return undefined;
  }
};

const main = async (): Promise<void> => {
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, svg] of await drawings())
    if (contentOf(name) !== svg) writeFileSync(new URL(name, FOLDER), svg);
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
