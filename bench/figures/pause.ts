import { withSandbox } from '../claimed-sandbox.ts';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';

const TURNS = 30;

export const pause: Figure = {
  name: 'pause',
  about: 'a sandbox is paused, and goes on',
  run: async (bench) =>
    await withSandbox(bench, async ({ daemon: { service }, id }) => {
      const set = async (state: 'paused' | 'running'): Promise<number> => {
        const began = performance.now();
        const body = JSON.stringify({ state });
        await service.call({ method: 'PUT', path: `/sandboxes/${id}/state`, body }, 200);
        return performance.now() - began;
      };
      const turns = async (): Promise<{ readonly paused: number; readonly woken: number }> => {
        const [paused, woken]: [number[], number[]] = [[], []];
        for (let turn = 0; turn < TURNS; turn += 1) {
          paused.push(await set('paused'));
          woken.push(await set('running'));
        }
        return { paused: quantile(paused, 0.5), woken: quantile(woken, 0.5) };
      };
      await turns();
      const found = [];
      for (let round = 0; round < bench.rounds; round += 1) found.push(await turns());
      const row = (name: string, ours: readonly number[]) => ({
        name,
        unit: 'ms',
        better: 'less' as const,
        reach: 50,
        beyond: 10,
        ours,
      });
      return [
        row(
          'pause, p50',
          found.map(({ paused }) => paused),
        ),
        row(
          'wake, p50',
          found.map(({ woken }) => woken),
        ),
      ];
    }),
};
