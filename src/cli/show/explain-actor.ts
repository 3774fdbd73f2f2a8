import type { ActorReport, ActorTransition, MachineReport } from '../client/wire.ts';
import { formatDuration } from '../../model/durations.ts';
import { printable } from '../common/printable.ts';
import { shortTime, statusOf } from './rows.ts';
import { fields, table } from './table.ts';

export const actorText = (actor: ActorReport, machine: MachineReport): string =>
  [
    fields([
      [actor.kind, actor.name],
      ['key', actor.key],
      ['state', actor.state],
      ['since', shortTime(actor.since)],
      ['status', statusOf(actor)],
      ['led by', ledBy(actor)],
      [
        'seen by',
        actor.seenBy.note === undefined
          ? actor.seenBy.replica
          : `${actor.seenBy.replica} (${actor.seenBy.note})`,
      ],
    ]),
    section('Why', actor.why.map((line) => `  ${printable(line)}\n`).join('')),
    section('Current state', stateChart(machine, actor.state)),
    section(
      'Waits for',
      actor.deadlines
        .map(
          ({ what, inMs }) =>
            `  ${what}, ${inMs < 0 ? `${lasting(-inMs)} late` : `in ${lasting(inMs)}`}\n`,
        )
        .join(''),
    ),
    section(
      'Requested, and not answered yet',
      actor.pending
        .map(
          ({ intent, forMs, epoch }) =>
            `  ${intent}, for ` +
            `${lasting(forMs)}${epoch === undefined ? '' : `, under epoch ${epoch}`}\n`,
        )
        .join(''),
    ),
    section('Differs from its record', differing(actor)),
    section(
      'History',
      actor.transitions.length === 0
        ? ''
        : table(['TIME', 'EVENT', 'BECAUSE', 'TO', 'AFTER'], actor.transitions.map(cellsOf)),
    ),
  ]
    .filter((part) => part !== '')
    .join('\n');

export const transitionLine = (transition: ActorTransition): string =>
  table(cellsOf(transition), []);

export const seenByText = ({ replica, note }: ActorReport['seenBy']): string =>
  `seen by ${replica}${note === undefined ? '' : ` (${note})`}`;

const cellsOf = ({ time, event, cause, to, stoodMs, from }: ActorTransition): readonly string[] => [
  shortTime(time) ?? '',
  event,
  cause ?? '-',
  to,
  from === undefined ? '-' : lasting(stoodMs),
];

const ledBy = ({ leader: { shard, replica, epoch } }: ActorReport): string =>
  `${replica ?? 'nobody now'} (shard ${shard}${epoch === undefined ? '' : `, epoch ${epoch}`})`;

const section = (title: string, text: string): string => (text === '' ? '' : `${title}:\n${text}`);

const differing = ({ record: { unread, stored, differs } }: ActorReport): string => {
  if (unread !== undefined) return `  ${unread}\n`;
  if (stored === undefined) return '  there is no record\n';
  return differs
    .map(
      ({ field, actor, record }) =>
        `  ${field}: the actor has ${shown(actor)}, the record ${shown(record)}\n`,
    )
    .join('');
};

const shown = (value: unknown): string =>
  printable(JSON.stringify(value) ?? 'nothing').slice(0, 100);

/** Above one second, in whole seconds. */
const lasting = (ms: number): string =>
  formatDuration(ms >= 1_000 ? Math.round(ms / 1_000) * 1_000 : Math.max(0, Math.round(ms)));

type State = MachineReport['states'][number];

/**
 * A tree that marks current states and lists the transitions out of them. `present` is spelled as
 * by the service.
 */
export const stateChart = ({ states }: Pick<MachineReport, 'states'>, present: string): string => {
  const parts = present.split(' ');
  const isIn = ({ path }: State): boolean =>
    path !== '' && parts.some((part) => part === path || part.startsWith(`${path}.`));
  return states
    .filter(({ path }) => path !== '')
    .flatMap((state) => {
      const depth = state.path.split('.').length;
      const line =
        `${isIn(state) ? '▶' : ' '} ` +
        `${'  '.repeat(depth - 1)}${state.path.slice(state.path.lastIndexOf('.') + 1)}`;
      return [
        line,
        ...(isIn(state) ? waysOf(state).map((way) => `    ${'  '.repeat(depth)}${way}`) : []),
      ];
    })
    .map((line) => `${line}\n`)
    .join('');
};

const waysOf = ({ ways }: State): readonly string[] =>
  ways.flatMap(({ event, guard, to }) =>
    to === undefined
      ? []
      : [`${[event, guard && `[${guard}]`].filter(Boolean).join(' ') || 'otherwise'} → ${to}`],
  );
