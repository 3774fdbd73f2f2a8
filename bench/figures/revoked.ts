import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { revocationMeasures } from '../revocation-measures.ts';

export const revoked: Figure = {
  name: 'revoked',
  about: 'a key is revoked: until it is refused, and until its terminals are closed',
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    try {
      await daemon.service.createFullPool('bench', 1);
      const sandboxId = await daemon.service.claim('bench');
      const key = readFileSync(join(daemon.dataDir, 'keys', 'tenant.key'), 'utf8').trim();
      return await revocationMeasures(bench, { ports: [daemon.service.port], key, sandboxId });
    } finally {
      await daemon.dispose();
    }
  },
};
