import { Daemon } from '../daemon.ts';
import { inPairs, type Figure } from '../figure.ts';
import { pause } from '../process-facts.ts';
import type { Service } from '../service.ts';

const SANDBOXES = 100;
/** Of 100, by the 25 % that is the default. */
const LEAST_IDLE = 75;
const SAMPLE_MS = 50;
const DEADLINE_MS = 60_000;
const POOL = 'rolled';

interface PoolStatus {
  readonly idleReplicas: number;
  readonly updateRevision: string;
  readonly updatedReplicas: number;
  readonly outdatedReplicas: number;
}

export const rollout: Figure = {
  name: 'rollout',
  about: `time until all of ${SANDBOXES} idle sandboxes are replaced after an edit, against filling a pool of as many`,
  run: async (bench) => {
    const daemon = await Daemon.start(bench.load);
    const { service } = daemon;
    const tooFew: number[] = [];
    let edits = 0;
    try {
      await service.createFullPool(POOL, SANDBOXES);
      const rollOut = async (): Promise<number> => {
        await daemon.calm();
        const began = performance.now();
        const before = await statusOf(service);
        await service.call(
          {
            method: 'PUT',
            path: `/sandboxpools/${POOL}`,
            body: JSON.stringify({ overrides: { defaultIdleTimeout: `${100 + edits++}m` } }),
          },
          200,
        );
        tooFew.push(await samplesBelow(service, before.updateRevision));
        return performance.now() - began;
      };
      const fillOne = async (): Promise<number> => {
        await daemon.calm();
        const began = performance.now();
        await service.createFullPool('bench', SANDBOXES);
        const tookMs = performance.now() - began;
        await service.removePool('bench');
        return tookMs;
      };
      await fillOne();
      await rollOut();
      tooFew.length = 0;
      const { ours, theirs } = await inPairs(bench, { ours: rollOut, theirs: fillOne });
      return [
        {
          name: `rollout of ${SANDBOXES} idle / a pool of ${SANDBOXES} filled`,
          unit: 'ms',
          better: 'less',
          reach: 1.5,
          beyond: 1.2,
          ours,
          theirs,
        },
        {
          name: `samples with less than ${LEAST_IDLE} idle, each ${SAMPLE_MS} ms`,
          unit: '',
          better: 'less',
          reach: 0,
          ours: tooFew,
        },
      ];
    } finally {
      await daemon.dispose();
    }
  },
};

/** How often too few were idle until all were replaced. */
const samplesBelow = async (service: Service, earlier: string): Promise<number> => {
  const deadline = performance.now() + DEADLINE_MS;
  for (let below = 0; ; await pause(SAMPLE_MS)) {
    const status = await statusOf(service);
    if (status.idleReplicas < LEAST_IDLE) below += 1;
    if (
      status.updateRevision !== earlier &&
      status.outdatedReplicas === 0 &&
      status.idleReplicas === SANDBOXES
    )
      return below;
    if (performance.now() > deadline)
      throw new Error(`the rollout does not end: ${JSON.stringify(status)}`);
  }
};

const statusOf = async (service: Service): Promise<PoolStatus> =>
  (
    JSON.parse(await service.call({ method: 'GET', path: `/sandboxpools/${POOL}` }, 200)) as {
      template: { status: PoolStatus };
    }
  ).template.status;
