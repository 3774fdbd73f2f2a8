import type { MachineReport } from '../client/wire.ts';

type State = MachineReport['states'][number];

/**
 * A machine's states as a tree, with marks at those that an actor stands in, and below these the
 * ways out of them. `present` is the actor's state as the service spells it.
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

/** Lists the ways that lead to another state, one line for each event. */
const waysOf = ({ ways }: State): readonly string[] =>
  ways.flatMap(({ event, guard, to }) =>
    to === undefined
      ? []
      : [`${[event, guard && `[${guard}]`].filter(Boolean).join(' ') || 'otherwise'} → ${to}`],
  );
