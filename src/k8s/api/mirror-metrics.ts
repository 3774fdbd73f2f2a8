import type { MirrorReport } from '../../contracts/mirror-report.ts';
import type { Metrics } from '../../contracts/metrics.ts';

/** Several reflectors show the longest silence, and the sum of restarts. */
export const measureMirror = (
  metrics: Metrics,
  mirror: string,
  reports: () => readonly MirrorReport[],
): void => {
  const labels = { mirror };
  metrics.read('sandpool_mirror_silence_seconds', () => {
    const silences = reports().flatMap(({ silentMs }) => silentMs ?? []);
    return silences.length === 0 ? [] : [{ labels, value: Math.max(...silences) / 1_000 }];
  });
  metrics.read('sandpool_mirror_restarts_total', () => [
    { labels, value: reports().reduce((sum, { restarts }) => sum + restarts, 0) },
  ]);
};
