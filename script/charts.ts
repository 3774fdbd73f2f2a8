/**
 * Writes docs/machines/*.md: each machine's state chart, read off its definition. With `--check` it writes nothing, names
 * what is stale, and ends with 1 if anything is.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AnyStateMachine, StateNode } from 'xstate';
import { poolMachine } from '../src/machines/pool-machine.ts';
import { sandboxMachine } from '../src/machines/sandbox-machine.ts';
import { poolProse, sandboxProse } from './charts-prose.ts';

type Node = Pick<StateNode, 'id' | 'key' | 'path' | 'type' | 'states' | 'initial' | 'entry' | 'transitions' | 'always'>;

/** One transition as it is drawn: from the event, or without one where it is taken at once. */
interface Way { readonly from: readonly string[]; readonly to: readonly string[] | undefined; readonly event: string; readonly guard: string | undefined; readonly actions: readonly string[] }

const FOLDER = fileURLToPath(new URL('../docs/machines/', import.meta.url));

/** Every page by its file name. */
export const pages = (): ReadonlyMap<string, string> => new Map([
  ['sandbox.md', pageOf(sandboxMachine, sandboxProse)],
  ['pool.md', pageOf(poolMachine, poolProse)],
]);

/** The pages that are not as they should be. */
export const stalePages = (folder: string = FOLDER): readonly string[] =>
  [...pages()].filter(([name, text]) => contentOf(join(folder, name)) !== text).map(([name]) => name);

/**
 * The machine's chart as a Mermaid stateDiagram-v2. Mermaid draws no line between the insides of two composite states:
 * such a line joins the outermost states that it leaves and enters, and its label names the inner ones.
 */
export const chartOf = (machine: AnyStateMachine): string => {
  const { root } = machine;
  const ways = waysOf(root);
  return ['stateDiagram-v2', ...insideOf(root, ways).map((line) => `  ${line}`)].join('\n');
};

const pageOf = (machine: AnyStateMachine, prose: string): string => [
  '<!-- Written by script/charts.ts from the machine itself. -->',
  prose.trim(),
  `\`\`\`mermaid\n${chartOf(machine)}\n\`\`\``,
  'Of several ways for one event the first whose guard holds is taken. A way without an event is taken as soon as its guard holds.',
  '## State by state',
  tableOf(machine.root),
  '',
].join('\n\n').trimEnd() + '\n';

const insideOf = (node: Node, ways: readonly Way[]): readonly string[] => {
  const children = Object.values(node.states);
  const regions = children.map((child) => [...stateLines(child, ways)]);
  if (node.type === 'parallel') {
    const blocks = regions.flatMap((lines, index) => (index === 0 ? lines : ['--', ...lines]));
    return node.path.length > 0 ? blocks : [`state ${node.key} {`, ...blocks.map(indent), '}'];
  }
  const initial = node.initial.target[0];
  return [
    ...(initial ? [`[*] --> ${idOf(initial.path)}`] : []),
    ...regions.flat(),
    ...linesWithin(node, ways),
    ...children.filter(({ type }) => type === 'final').map(({ path }) => `${idOf(path)} --> [*]`),
  ];
};

const stateLines = (node: Node, ways: readonly Way[]): readonly string[] => {
  const named = `state "${node.key}" as ${idOf(node.path)}`;
  if (Object.keys(node.states).length === 0) return [named];
  return [`${named} {`, ...insideOf(node, ways).map(indent), '}'];
};

/** The ways whose innermost common state is this one, one line for each pair of its children. */
const linesWithin = (node: Node, ways: readonly Way[]): readonly string[] => {
  const depth = node.path.length;
  const labels = new Map<string, string[]>();
  let fromAny = false;
  for (const way of ways) {
    if (!way.to || commonDepth(way) !== depth || !startsWith(way.from, node.path)) continue;
    const inner = way.from.length > depth;
    fromAny ||= !inner;
    const from = inner ? idOf(way.from.slice(0, depth + 1)) : `${idOf(node.path)}_any`;
    const line = `${from} --> ${idOf(way.to.slice(0, depth + 1))}`;
    labels.set(line, [...(labels.get(line) ?? []), labelOf(way, depth + 1)]);
  }
  return [
    ...(fromAny ? [`state "any of these" as ${idOf(node.path)}_any`] : []),
    ...[...labels].map(([line, texts]) => `${line} : ${texts.join('<br/>')}`),
  ];
};

const labelOf = ({ from, to, event, guard }: Way, depth: number): string => {
  const what = [event, guard === undefined ? '' : `[${guard}]`].filter(Boolean).join(' ') || 'otherwise';
  const before = from.slice(depth).join('.');
  const after = to?.slice(depth).join('.') ?? '';
  return `${before ? `in ${before} – ` : ''}${what}${after ? ` → ${after}` : ''}`;
};

/** How deep the innermost state is that a way doesn't leave. A way into a state's own inside stays within that state. */
const commonDepth = ({ from, to = [] }: Way): number => {
  let depth = 0;
  while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth += 1;
  return depth === to.length ? depth - 1 : depth;
};

const waysOf = (node: Node): readonly Way[] => {
  const mine = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
  const ways = mine.flatMap(({ eventType, guard, target, actions }): readonly Way[] => {
    const common = { from: node.path, event: eventType, guard: guardName(guard), actions: actions.map(nameOf) };
    return target ? target.map(({ path }) => ({ ...common, to: path })) : [{ ...common, to: undefined }];
  });
  return [...ways, ...Object.values(node.states).flatMap(waysOf)];
};

const tableOf = (root: Node): string => {
  const ways = waysOf(root);
  const rows = everyNode(root).flatMap(({ path, entry, type }) => {
    const own = ways.filter(({ from }) => idOf(from) === idOf(path));
    const staying = own.filter(({ to }) => to === undefined).map((way) => `${labelOf(way, path.length)}: ${way.actions.join(', ')}`);
    const leaving = own.filter(({ to }) => to).map((way) =>
      `${labelOf({ ...way, from: [], to: [] }, 0)} → ${way.to?.join('.')}${way.actions.length > 0 ? `: ${way.actions.join(', ')}` : ''}`);
    if (type !== 'final' && entry.length + own.length === 0) return [];
    return [`| ${path.join('.') || 'everywhere'} | ${entry.map(nameOf).join(', ')} | ${[...leaving, ...staying].join('<br/>')} |`];
  });
  return ['| state | on entry | ways: actions |', '|---|---|---|', ...rows].join('\n');
};

const everyNode = (node: Node): readonly Node[] => [node, ...Object.values(node.states).flatMap(everyNode)];

const guardName = (guard: unknown): string | undefined => guard === undefined ? undefined : nameOf(guard);

/** As it was given to `setup`; `…` for what has no name. */
const nameOf = (named: unknown): string => {
  if (typeof named === 'string') return named;
  if (typeof named === 'object' && named !== null && 'type' in named && typeof named.type === 'string') return named.type;
  return '…';
};

const idOf = (path: readonly string[]): string => path.join('_');
const indent = (line: string): string => `  ${line}`;
const startsWith = (path: readonly string[], start: readonly string[]): boolean => start.every((key, index) => path[index] === key);

const contentOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
};

const main = (args: readonly string[]): number => {
  const stale = stalePages();
  if (args.includes('--check')) {
    for (const name of stale) process.stderr.write(`docs/machines/${name} is stale: run npx tsx script/charts.ts\n`);
    return stale.length > 0 ? 1 : 0;
  }
  mkdirSync(FOLDER, { recursive: true });
  for (const [name, text] of pages()) writeFileSync(join(FOLDER, name), text);
  return 0;
};

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = main(process.argv.slice(2));
