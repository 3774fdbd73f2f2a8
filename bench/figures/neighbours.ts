import { COMPATIBLE_FLAGS, Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { keysOfTeams } from '../many-keys.ts';
import { beside } from '../neighbours/beside.ts';
import { FLOODS } from '../neighbours/floods.ts';

/** What the quiet tenant's pool is made from where the flood is one of readiness probes. */
const PROBED = {
  template: {
    containers: [
      {
        name: 'main',
        image: 'host',
        readinessProbe: { exec: { command: ['/bin/true'] }, timeoutSeconds: 30 },
      },
    ],
  },
};

/** A row of figures for each flood, on a daemon of its own. */
export const neighbours: readonly Figure[] = FLOODS.map((flood): Figure => ({
  name: `neighbours:${flood.name}`,
  about: `another tenant beside ${flood.about}`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load, flood.compatible ? COMPATIBLE_FLAGS : []);
    try {
      const [key = ''] = await keysOfTeams(bench.load, daemon, ['noisy']);
      return await beside(bench, flood, {
        quiet: daemon.service,
        quietSource: flood.probed ? PROBED : { templateName: 'default' },
        noisy: {
          port: daemon.service.port,
          ...(flood.compatible && { compatiblePort: Number(daemon.compatibleUrl.port) }),
          key,
          template: 'default',
          image: 'host',
        },
        calm: () => daemon.calm(),
      });
    } finally {
      await daemon.dispose();
    }
  },
}));
