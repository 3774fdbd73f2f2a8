import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

export const garbageCollector = (): (() => void) => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
};
