import { setImmediate as nextTurn } from 'node:timers/promises';
import { eventually } from './eventually.ts';

/** Turns the event loop, so that sockets are read. */
export const turns = async (count = 4): Promise<void> => {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
};

const STILL_LOOKS = 10;

/**
 * Waits until an amount is positive and equal at several looks, with sockets read in between. Time
 * also passes while this process waits for its processor.
 */
export const standsStill = async (amount: () => number, what: string): Promise<void> => {
  let [seen, looks] = [-1, 0];
  const isStill = (): boolean => {
    looks = seen === (seen = amount()) ? looks + 1 : 0;
    return seen > 0 && looks >= STILL_LOOKS;
  };
  await eventually(isStill, `${what} stands still`, () => seen);
};
