import type { AnyStateMachine } from 'xstate';
import {
  type ChartNode,
  everyNode,
  idOf,
  type Way,
  waysOf,
} from '../src/machines/machine-chart.ts';

/**
 * The machine's chart in Graphviz' language: states in boxes, those with states inside as frames,
 * one line for each pair of states. Where the number of actors in the n-th state (as `everyNode`
 * counts) is to stand, it has `@0000n@`.
 */
export const dotOf = (machine: AnyStateMachine): string => {
  const { root } = machine;
  const nodes = everyNode(root);
  const ways = waysOf(root).flatMap((way): readonly LeadingWay[] =>
    way.to ? [{ ...way, to: way.to }] : [],
  );
  const drawing = {
    number: new Map(nodes.map(({ path }, index) => [idOf(path), index])),
    anyOf: new Set(ways.filter(isWithin).map(({ from }) => idOf(from))),
  };
  return [
    'digraph machine {',
    'compound=true; bgcolor="white"; fontname="Helvetica"; fontsize=12; nodesep=0.35; ranksep=0.55;',
    'node [shape=box style="rounded,filled" fillcolor="#f4f6f8" color="#5b6770" fontname="Helvetica" fontsize=12];',
    'edge [color="#5b6770" fontname="Helvetica" fontsize=10];',
    ...insideOf(root, drawing),
    ...linesOf(nodes, ways),
    '}',
    '',
  ].join('\n');
};

interface LeadingWay extends Way {
  readonly to: readonly string[];
}
interface Drawing {
  readonly number: ReadonlyMap<string, number>;
  readonly anyOf: ReadonlySet<string>;
}

const insideOf = (node: ChartNode, drawing: Drawing): readonly string[] => [
  ...(drawing.anyOf.has(idOf(node.path))
    ? [`${quoted(anyIn(node.path))} [shape=plaintext style="" label="any of these"];`]
    : []),
  ...(node.type === 'compound'
    ? [`${quoted(startOf(node.path))} [shape=point width=0.12 color="#5b6770"];`]
    : []),
  ...Object.values(node.states).flatMap((child) => stateLines(child, drawing)),
];

const stateLines = (node: ChartNode, drawing: Drawing): readonly string[] => {
  const count = `@${String(drawing.number.get(idOf(node.path)) ?? 0).padStart(5, '0')}@`;
  if (isLeaf(node))
    return [
      `${quoted(idOf(node.path))} [label="${node.key}\\n${count}"${node.type === 'final' ? ' peripheries=2' : ''}];`,
    ];
  return [
    `subgraph ${quoted(frameOf(node.path))} {`,
    `label="${node.key}  ${count}"; style="rounded"; color="#aab4bc";`,
    ...insideOf(node, drawing),
    '}',
  ];
};

const linesOf = (nodes: readonly ChartNode[], ways: readonly LeadingWay[]): readonly string[] => {
  const by = new Map(nodes.map((node) => [idOf(node.path), node]));
  const end = (path: readonly string[]): End => {
    const node = by.get(idOf(path));
    return node && !isLeaf(node)
      ? { at: idOf(firstLeaf(node).path), frame: frameOf(path) }
      : { at: idOf(path), frame: undefined };
  };
  const starts = nodes.flatMap((node) => {
    const first = node.type === 'compound' ? node.initial.target[0] : undefined;
    return first ? [lineOf({ at: startOf(node.path), frame: undefined }, end(first.path), '')] : [];
  });
  const labels = new Map<
    string,
    { readonly from: End; readonly to: End; readonly texts: string[] }
  >();
  for (const way of ways) {
    const from = isWithin(way) ? { at: anyIn(way.from), frame: undefined } : end(way.from);
    const to = end(way.to);
    const key = JSON.stringify([from, to]);
    const line = labels.get(key) ?? { from, to, texts: [] };
    line.texts.push(
      [way.event, way.guard === undefined ? '' : `[${way.guard}]`].filter(Boolean).join(' ') ||
        'otherwise',
    );
    labels.set(key, line);
  }
  return [
    ...starts,
    ...[...labels.values()].map(({ from, to, texts }) => lineOf(from, to, texts.join('\\n'))),
  ];
};

/** What Graphviz joins: a state, and the frame around it where the line ends there. */
interface End {
  readonly at: string;
  readonly frame: string | undefined;
}

const lineOf = (from: End, to: End, label: string): string => {
  const attributes = [
    ...(label ? [`label="${label}"`] : []),
    ...(from.frame ? [`ltail=${quoted(from.frame)}`] : []),
    ...(to.frame ? [`lhead=${quoted(to.frame)}`] : []),
  ];
  return `${quoted(from.at)} -> ${quoted(to.at)}${attributes.length > 0 ? ` [${attributes.join(' ')}]` : ''};`;
};

/** A way from a state into its own inside begins at whatever is there. */
const isWithin = ({ from, to }: LeadingWay): boolean =>
  from.length < to.length && from.every((key, index) => to[index] === key);

const isLeaf = (node: ChartNode): boolean => Object.keys(node.states).length === 0;
const firstLeaf = (node: ChartNode): ChartNode => {
  const [first] = Object.values(node.states);
  return first ? firstLeaf(first) : node;
};
const frameOf = (path: readonly string[]): string => `cluster_${idOf(path)}`;
const startOf = (path: readonly string[]): string => `${idOf(path)}_start`;
const anyIn = (path: readonly string[]): string => `${idOf(path)}_any`;
const quoted = (text: string): string => `"${text}"`;
