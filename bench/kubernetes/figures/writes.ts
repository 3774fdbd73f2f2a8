import { apiCounts, trafficOf } from '../api-counts.ts';
import { createPool, onACluster } from '../cluster.ts';
import { pause } from '../../process-facts.ts';

const CYCLES = 100;
/** Longer than events and status writes wait. */
const SETTLE_MS = 2_000;

export const writes = onACluster(
  'writes',
  'requests to the API server that claims and whole cycles cause, by its own metrics',
  async ({ bench, controlPlane, startReplicas }) => {
    const {
      first: { service },
    } = await startReplicas(1);
    await createPool(service, 'bench', CYCLES);
    await service.untilIdle('bench', CYCLES);
    await pause(SETTLE_MS);
    const idle = await apiCounts(controlPlane);
    const claimed = await bench.load.closed(service.port, service.claims('bench', CYCLES), 1);
    const afterClaims = await apiCounts(controlPlane);
    await service.giveBack(claimed);
    await service.untilIdle('bench', CYCLES);
    await pause(SETTLE_MS);
    const claims = trafficOf(idle, afterClaims, CYCLES);
    const cycles = trafficOf(idle, await apiCounts(controlPlane), CYCLES);
    bench.say(`a claim: ${claims.text}`);
    bench.say(`a cycle: ${cycles.text}`);
    return [
      {
        name: 'API writes in the way of a claim',
        unit: '',
        better: 'less',
        ours: [claims.writes],
        reach: 1,
      },
      {
        name: 'API reads in the way of a claim',
        unit: '',
        better: 'less',
        ours: [claims.reads],
        reach: 0,
      },
      {
        name: 'API writes per claim, release and replacement',
        unit: '',
        better: 'less',
        ours: [cycles.writes],
        reach: 8,
      },
    ];
  },
);
