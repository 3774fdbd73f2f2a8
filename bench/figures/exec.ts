import { inPairs, type Figure } from '../figure.ts';
import { costOf } from '../load.ts';
import { rowOf } from '../measure.ts';
import { Sandbox } from '../sandbox.ts';
import { median } from '../statistics.ts';

const COMMANDS = 200;
const ARGV = ['/bin/true'];

export const exec: Figure = {
  name: 'exec',
  about: 'a command `true` over REST, against only the launcher in the same sandbox',
  run: async (bench) => {
    await using sandbox = await Sandbox.start(bench);
    const { daemon, place } = sandbox;
    const path = `/sandboxes/${place.id}/exec`;
    const ask = { method: 'POST', path, body: JSON.stringify({ command: ARGV }) };
    const asks = daemon.service.keyed(Array.from({ length: COMMANDS }, () => ask));
    const ours = async (): Promise<number> => {
      const { p50, result } = await costOf([], 200, () =>
        bench.load.closed(daemon.service.port, asks, 1),
      );
      const failed = result.bodies.find((body) => !body.includes('"exitCode":0,'));
      if (failed !== undefined) throw new Error(`a command failed: ${failed}`);
      return p50;
    };
    const theirs = async (): Promise<number> => median(await sandbox.joins(ARGV, COMMANDS));
    const pairs = await inPairs(bench, { ours, theirs }, 1);
    const name = 'exec of true, p50 / only the launcher';
    return [rowOf({ name, reach: 1.3, beyond: 1.1 }, pairs, (ms) => ms)];
  },
};
