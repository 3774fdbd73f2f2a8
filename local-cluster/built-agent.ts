import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The agent of Pods, as native/build makes it. */
export const builtAgent = (): string => {
  const launcher = join(import.meta.dirname, '../native/build-output/launcher');
  readFileSync(launcher); // it says what is missing
  return launcher;
};
