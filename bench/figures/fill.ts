import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { pathsOf } from '../../src/embedded/spawner/protocol.ts';
import { Child } from '../child.ts';
import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import type { RawAnswer, RawOrder } from '../raw-launcher.ts';

const SANDBOXES = 100;
const PARALLEL = 4;
/** Apart from the daemon's own range. */
export const FIRST_UID = 2_100_000_000;

export const LAUNCHER = resolve('native/build-output/launcher');

export const fill: Figure = {
  name: 'fill',
  about:
    'time until a pool of 100 is filled, against as many raw starts of bubblewrap, 4 at a time on both sides',
  run: async (bench) => {
    const template = SandboxTemplateSchema.parse(
      JSON.parse(readFileSync('config/templates/default.json', 'utf8')),
    );
    const raw = new Child<RawOrder, RawAnswer>('raw-launcher');
    const daemon = await Daemon.start(bench.load, ['--parallel-starts', String(PARALLEL)]);
    try {
      const rawStarts = (cgroups: boolean) => async (): Promise<number> =>
        await onlyTime(raw, {
          kind: 'starts',
          launcherPath: LAUNCHER,
          rootfs: pathsOf(daemon.dataDir).rootfs,
          folder: bench.folder,
          definition: renderDefinition(template.spec),
          count: SANDBOXES,
          parallel: PARALLEL,
          cgroups,
          ...(process.getuid?.() === 0 ? { firstUid: FIRST_UID } : {}),
        });
      const fillOne = async (): Promise<number> => {
        const began = performance.now();
        await daemon.service.createFullPool('bench', SANDBOXES);
        const tookMs = performance.now() - began;
        await daemon.service.removePool('bench');
        await daemon.calm();
        return tookMs;
      };
      await fillOne();
      const plain = await inPairs(bench, { ours: fillOne, theirs: rawStarts(false) });
      const withCgroups = await inPairs(bench, { ours: fillOne, theirs: rawStarts(true) });
      return [
        {
          name: `pool of ${SANDBOXES} filled`,
          unit: 'ms',
          better: 'less',
          reach: 1.2,
          beyond: 1.05,
          ...plain,
        },
        {
          name: 'the same, raw starts with cgroups too',
          unit: 'ms',
          better: 'less',
          ...withCgroups,
        },
      ];
    } finally {
      await daemon.dispose();
      await raw.stop();
    }
  },
};

export const onlyTime = async (
  raw: Child<RawOrder, RawAnswer>,
  order: RawOrder,
): Promise<number> => {
  const [tookMs] = await rawTimes(raw, order);
  if (tookMs === undefined) throw new Error('nothing was measured');
  return tookMs;
};

export const rawTimes = async (
  raw: Child<RawOrder, RawAnswer>,
  order: RawOrder,
): Promise<readonly number[]> => {
  const answer = await raw.ask(order);
  if ('failed' in answer) throw new Error(`the raw side failed: ${answer.failed}`);
  return answer.tookMs;
};
