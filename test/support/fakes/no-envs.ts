import type { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';

/** A mirror that knows no env. */
export const noEnvs: Pick<EnvMirror, 'named' | 'lookUp'> = {
  named: () => undefined,
  lookUp: async () => undefined,
};
