import type { StateValue } from 'xstate';

/**
 * `stopping.releasing` and the like, in full; of parallel regions each by itself, with spaces
 * between them.
 */
export const pathOf = (value: StateValue): string => {
  if (typeof value === 'string') return value;
  let path = '';
  for (const state in value) {
    const inner = pathOf(value[state] ?? '');
    const below = inner === '' ? state : `${state}.${inner.replaceAll(' ', ` ${state}.`)}`;
    path += path === '' ? below : ` ${below}`;
  }
  return path;
};
