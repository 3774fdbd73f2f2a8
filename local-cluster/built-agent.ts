import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const builtAgent = (): string => {
  const launcher = join(import.meta.dirname, '../native/build-output/launcher');
  readFileSync(launcher); // the error says what is missing
  return launcher;
};
