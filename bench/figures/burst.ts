import { readFileSync } from 'node:fs';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { pathsOf } from '../../src/embedded/spawner/protocol.ts';
import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import { expectAll } from '../load.ts';
import type { RawAnswer, RawOrder } from '../raw-launcher.ts';
import { FIRST_UID, LAUNCHER, onlyTime } from './fill.ts';

/**
 * As many as a class or a CI matrix asks for at once; what the first env has idle, and what starts
 * at a time, are defaults.
 */
const CLAIMS = 30;
const [IDLE, PARALLEL] = [4, 4];

export const burst: Figure = {
  name: 'burst',
  about:
    '30 claims that wait, at once, on the env of the first start: until the last is answered, against 30 raw starts',
  run: async (bench) => {
    const template = SandboxTemplateSchema.parse(
      JSON.parse(readFileSync('config/templates/default.json', 'utf8')),
    );
    const raw = new Child<RawOrder, RawAnswer>('raw-launcher');
    const started = await Daemon.start(bench.load);
    try {
      const theirs = async (): Promise<number> =>
        await onlyTime(raw, {
          kind: 'starts',
          launcherPath: LAUNCHER,
          rootfs: pathsOf(started.dataDir).rootfs,
          folder: bench.folder,
          definition: renderDefinition(template.spec),
          count: CLAIMS,
          parallel: PARALLEL,
          cgroups: true,
          ...(process.getuid?.() === 0 ? { firstUid: FIRST_UID } : {}),
        });
      const measured = await inPairs(bench, { ours: async () => await lastServed(bench), theirs });
      return [
        {
          name: `${CLAIMS} waiting claims at once on the first env, last served`,
          unit: 'ms',
          better: 'less',
          reach: 2,
          beyond: 1.3,
          ...measured,
        },
      ];
    } finally {
      await started.dispose();
      await raw.stop();
    }
  },
};

/** On a daemon of its own: an env that has grown once is not the first one any more. */
const lastServed = async (bench: Bench): Promise<number> => {
  const daemon = await Daemon.start(bench.load, ['--default-pool-replicas', String(IDLE)]);
  try {
    await daemon.service.untilIdle('default', IDLE);
    await daemon.calm();
    const ask = {
      method: 'POST',
      path: '/sandboxes',
      key: '',
      body: JSON.stringify({ poolName: 'default', waitTimeoutSeconds: 60 }),
    };
    const began = performance.now();
    expectAll(
      await bench.load.closed(
        daemon.service.port,
        daemon.service.keyed(Array.from({ length: CLAIMS }, () => ask)),
        CLAIMS,
      ),
      201,
    );
    return performance.now() - began;
  } finally {
    await daemon.dispose();
  }
};
