/** Makes docs/reference/machines/*.md, the state charts, from the machines. */
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

export const chartPages = (): ReadonlyMap<string, string> =>
  new Map([
    ['docs/reference/machines/sandbox.md', pageOf(sandboxMachine, sandboxProse)],
    ['docs/reference/machines/pool.md', pageOf(poolMachine, poolProse)],
    [
      'docs/reference/machines/autoscaling-group.md',
      pageOf(autoscalingGroupMachine, autoscalingGroupProse),
    ],
    ['docs/reference/machines/env-member.md', pageOf(envMemberMachine, memberProse)],
    ['docs/reference/machines/approval.md', pageOf(approvalMachine, approvalProse)],
  ]);

const pageOf = (machine: AnyStateMachine, prose: string): string =>
  [
    '<!-- Written by script/charts.ts from the machine itself. -->',
    prose.trim(),
    `\`\`\`mermaid\n${chartOf(machine)}\n\`\`\``,
    'If an event has several transitions, the first one with a true guard is taken. A transition without an event is taken as soon as its guard is true.',
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
  return ['| state | on entry | transitions: actions |', '|---|---|---|', ...rows].join('\n');
};
