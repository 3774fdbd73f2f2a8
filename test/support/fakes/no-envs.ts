import type { EnvMirror } from '../../../src/actors/runtime/record-mirror.ts';

export const noEnvs: Pick<EnvMirror, 'named' | 'lookUp'> = {
  named: () => undefined,
  lookUp: async () => undefined,
};
