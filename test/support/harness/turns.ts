import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventually } from './eventually.ts';

/** Has the event loop go round, so that what waits in sockets is read. */
export const turns = async (count = 4): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
};

const STILL_LOOKS = 10;

/**
 * Waits until an amount is more than nothing and the same at so many looks in a row, between any
 * two of which sockets are read: time alone passes too where this process waits for its processor.
 */
export const standsStill = async (amount: () => number, what: string): Promise<void> => {
  let [seen, looks] = [-1, 0];
  const isStill = (): boolean => {
    looks = seen === (seen = amount()) ? looks + 1 : 0;
    return seen > 0 && looks >= STILL_LOOKS;
  };
  await eventually(isStill, `${what} stands still`, () => seen);
};
