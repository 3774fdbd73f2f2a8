import {
  START_HELD_MS,
  START_WANTED_MS,
  type ClusterStarts,
} from '../../contracts/coordination/cluster-starts.ts';
import type { RedisPlace } from '../redis-link.ts';

export const redisClusterStarts = ({ link, keys }: RedisPlace, replica: string): ClusterStarts => ({
  holdStarts: async (asked) => {
    const [, ...answer] = await link.run(
      'hold_starts',
      [keys.clusterStarts],
      [
        ...[replica, START_HELD_MS, START_WANTED_MS],
        ...asked.flatMap(({ clusterId, start }) => [clusterId, start]),
      ],
    );
    return asked.map((_, n) => ({
      start: String(answer[2 * n]),
      isWanted: answer[2 * n + 1] === 'wanted',
    }));
  },
  releaseStart: async ({ clusterId, start }) => {
    await link.run('release_start', [keys.clusterStarts], [replica, clusterId, start]);
  },
});
