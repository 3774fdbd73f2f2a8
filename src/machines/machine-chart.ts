import type { AnyStateMachine, StateNode } from 'xstate';

export type ChartNode = Pick<
  StateNode,
  'id' | 'key' | 'path' | 'type' | 'states' | 'initial' | 'entry' | 'transitions' | 'always'
>;

interface Way {
  readonly from: readonly string[];
  readonly to: readonly string[] | undefined;
  readonly event: string;
  readonly guard: string | undefined;
  readonly actions: readonly string[];
}

/**
 * The machine's chart as a Mermaid stateDiagram-v2. Mermaid cannot join the insides of two
 * composite states: such a line joins the outermost states, and its label names the inner ones.
 */
export const chartOf = (machine: AnyStateMachine, noteOf: NoteOf = () => ''): string => {
  const { root } = machine;
  return ['stateDiagram-v2', ...insideOf(root, { ways: waysOf(root), noteOf }).map(indent)].join(
    '\n',
  );
};

export type NoteOf = (path: string) => string;

interface Drawing {
  readonly ways: readonly Way[];
  readonly noteOf: NoteOf;
}

const insideOf = (node: ChartNode, drawing: Drawing): readonly string[] => {
  const children = Object.values(node.states);
  const regions = children.map((child) => [...stateLines(child, drawing)]);
  if (node.type === 'parallel') {
    const blocks = regions.flatMap((lines, index) => (index === 0 ? lines : ['--', ...lines]));
    return node.path.length > 0 ? blocks : [`state ${node.key} {`, ...blocks.map(indent), '}'];
  }
  const initial = node.initial.target[0];
  return [
    ...(initial ? [`[*] --> ${idOf(initial.path)}`] : []),
    ...regions.flat(),
    ...linesWithin(node, drawing.ways),
    ...children.filter(({ type }) => type === 'final').map(({ path }) => `${idOf(path)} --> [*]`),
  ];
};

const stateLines = (node: ChartNode, drawing: Drawing): readonly string[] => {
  const named = `state "${node.key}${drawing.noteOf(node.path.join('.'))}" as ${idOf(node.path)}`;
  if (Object.keys(node.states).length === 0) return [named];
  return [`${named} {`, ...insideOf(node, drawing).map(indent), '}'];
};

const linesWithin = (node: ChartNode, ways: readonly Way[]): readonly string[] => {
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

export const labelOf = ({ from, to, event, guard }: Way, depth: number): string => {
  const what =
    [event, guard === undefined ? '' : `[${guard}]`].filter(Boolean).join(' ') || 'otherwise';
  const before = from.slice(depth).join('.');
  const after = to?.slice(depth).join('.') ?? '';
  return `${before ? `in ${before} – ` : ''}${what}${after ? ` → ${after}` : ''}`;
};

const commonDepth = ({ from, to = [] }: Way): number => {
  let depth = 0;
  while (depth < from.length && depth < to.length && from[depth] === to[depth]) depth += 1;
  return depth === to.length ? depth - 1 : depth;
};

export const waysOf = (node: ChartNode): readonly Way[] => {
  const mine = [...[...node.transitions.values()].flat(), ...(node.always ?? [])];
  const ways = mine.flatMap(({ eventType, guard, target, actions }): readonly Way[] => {
    const common = {
      from: node.path,
      event: eventType,
      guard: guardName(guard),
      actions: actions.map(nameOf),
    };
    return target
      ? target.map(({ path }) => ({ ...common, to: path }))
      : [{ ...common, to: undefined }];
  });
  return [...ways, ...Object.values(node.states).flatMap(waysOf)];
};

export const everyNode = (node: ChartNode): readonly ChartNode[] => [
  node,
  ...Object.values(node.states).flatMap(everyNode),
];

const guardName = (guard: unknown): string | undefined =>
  guard === undefined ? undefined : nameOf(guard);

export const nameOf = (named: unknown): string => {
  if (typeof named === 'string') return named;
  if (
    typeof named === 'object' &&
    named !== null &&
    'type' in named &&
    typeof named.type === 'string'
  )
    return named.type;
  return '…';
};

export const idOf = (path: readonly string[]): string => path.join('_');
const indent = (line: string): string => `  ${line}`;
const startsWith = (path: readonly string[], start: readonly string[]): boolean =>
  start.every((key, index) => path[index] === key);
