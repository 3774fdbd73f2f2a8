import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Returns what collects all garbage at once, so that what is left can be measured. */
export const garbageCollector = (): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
};
