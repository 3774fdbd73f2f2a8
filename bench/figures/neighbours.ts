import { COMPATIBLE_FLAGS, Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { beside } from '../neighbours/beside.ts';
import { FLOODS } from '../neighbours/floods.ts';

/** For a flood of readiness probes. */
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

export const neighbours: readonly Figure[] = FLOODS.map((flood): Figure => ({
  name: `neighbours:${flood.name}`,
  about: `another tenant beside ${flood.about}`,
  run: async (bench) => {
    await using daemon = await Daemon.start(bench.load, flood.compatible ? COMPATIBLE_FLAGS : []);
    const key = await daemon.keyOfTeam('noisy');
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
  },
}));
