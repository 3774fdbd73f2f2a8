/**
 * Writes docs/machines/*.md: each machine's state chart, read off its definition. With `--check` it
 * writes nothing, names what is stale, and ends with 1 if anything is.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AnyStateMachine } from 'xstate';
import { autoscalingGroupMachine } from '../src/machines/autoscaling/group-machine.ts';
import { approvalMachine } from '../src/machines/approval/machine.ts';
import { envMemberMachine } from '../src/machines/env/member-machine.ts';
import {
  chartOf,
  type ChartNode,
  everyNode,
  idOf,
  labelOf,
  nameOf,
  waysOf,
} from '../src/machines/machine-chart.ts';
import { poolMachine } from '../src/machines/pool/machine.ts';
import { sandboxMachine } from '../src/machines/sandbox/machine.ts';
import {
  approvalProse,
  autoscalingGroupProse,
  memberProse,
  poolProse,
  sandboxProse,
} from './charts-prose.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FOLDER = join(ROOT, 'docs/machines');

/** Every page by its file name. */
export const pages = (): ReadonlyMap<string, string> =>
  new Map([
    ['sandbox.md', pageOf(sandboxMachine, sandboxProse)],
    ['pool.md', pageOf(poolMachine, poolProse)],
    ['autoscaling-group.md', pageOf(autoscalingGroupMachine, autoscalingGroupProse)],
    ['env-member.md', pageOf(envMemberMachine, memberProse)],
    ['approval.md', pageOf(approvalMachine, approvalProse)],
  ]);

/** The pages that are not as they should be. */
export const stalePages = (folder: string = FOLDER): readonly string[] =>
  [...pages()]
    .filter(([name, text]) => contentOf(join(folder, name)) !== text)
    .map(([name]) => name);

const pageOf = (machine: AnyStateMachine, prose: string): string =>
  [
    '<!-- Written by script/charts.ts from the machine itself. -->',
    prose.trim(),
    `\`\`\`mermaid\n${chartOf(machine)}\n\`\`\``,
    'Of several ways for one event the first whose guard holds is taken. A way without an event is taken as soon as its guard holds.',
    '## State by state',
    tableOf(machine.root),
    '',
  ]
    .join('\n\n')
    .trimEnd() + '\n';

const tableOf = (root: ChartNode): string => {
  const ways = waysOf(root);
  const rows = everyNode(root).flatMap(({ path, entry, type }) => {
    const own = ways.filter(({ from }) => idOf(from) === idOf(path));
    const staying = own
      .filter(({ to }) => to === undefined)
      .map((way) => `${labelOf(way, path.length)}: ${way.actions.join(', ')}`);
    const leaving = own
      .filter(({ to }) => to)
      .map(
        (way) =>
          `${labelOf({ ...way, from: [], to: [] }, 0)} → ${way.to?.join('.')}${way.actions.length > 0 ? `: ${way.actions.join(', ')}` : ''}`,
      );
    if (type !== 'final' && entry.length + own.length === 0) return [];
    return [
      `| ${path.join('.') || 'everywhere'} | ${entry.map(nameOf).join(', ')} | ${[...leaving, ...staying].join('<br/>')} |`,
    ];
  });
  return ['| state | on entry | ways: actions |', '|---|---|---|', ...rows].join('\n');
};

const contentOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

const main = (args: readonly string[]): number => {
  if (args.includes('--check')) {
    const stale = stalePages().map((name) => join(FOLDER, name));
    for (const file of stale)
      process.stderr.write(`${relative(ROOT, file)} is stale: run npx tsx script/charts.ts\n`);
    return stale.length > 0 ? 1 : 0;
  }
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of pages()) writeFileSync(join(FOLDER, name), text);
  return 0;
};

if (process.argv[1] === fileURLToPath(import.meta.url))
  process.exitCode = main(process.argv.slice(2));
