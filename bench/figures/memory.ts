import { Daemon } from '../daemon.ts';
import type { Figure } from '../figure.ts';
import { rowOf } from '../measure.ts';
import { aProbe } from '../probed.ts';
import { residentMbOf } from '../process-facts.ts';

const IDLE = 200;
const MORE = 1_000;

export const memory: Figure = {
  name: 'memory',
  about: `resident memory of a daemon with ${IDLE} idle sandboxes; its heap for each of ${MORE} more`,
  run: async (bench) => {
    const samples: Sample[] = [];
    for (let round = 0; round < bench.rounds; round += 1) {
      const probe = aProbe(bench);
      await using daemon = await Daemon.start(bench.load, [], { env: probe.env });
      await daemon.calm();
      const fresh = residentMbOf(daemon.pid);
      await daemon.service.createFullPool('bench', IDLE);
      await daemon.calm();
      const full = residentMbOf(daemon.pid);
      const spawner = residentMbOf(daemon.spawnerPid);
      const before = await probe.heap();
      await daemon.service.createFullPool('more', MORE);
      await daemon.calm();
      const each = ((await probe.heap()) - before) / MORE / 1_024;
      samples.push({ fresh, full, spawner, each });
    }
    const found = { ours: samples };
    return [
      rowOf(
        { name: `daemon memory, ${IDLE} idle sandboxes`, unit: 'MB', reach: 150, beyond: 110 },
        found,
        ({ full }) => full,
      ),
      rowOf({ name: 'the same, without any', unit: 'MB' }, found, ({ fresh }) => fresh),
      rowOf({ name: 'its spawner, with them', unit: 'MB' }, found, ({ spawner }) => spawner),
      rowOf({ name: 'heap for each idle sandbox', unit: 'KB' }, found, ({ each }) => each),
    ];
  },
};

interface Sample {
  readonly fresh: number;
  readonly full: number;
  readonly spawner: number;
  readonly each: number;
}
