/**
 * Starts a control plane, Redis and a replica, prints the admin kubeconfig's path, and waits to be
 * killed.
 */
import { Replicas } from '../../../local-cluster/replicas.ts';
import { startSimulatedCluster } from '../../../local-cluster/simulated-cluster.ts';

const { controlPlane, redis } = await startSimulatedCluster({ nodes: 1 });
await Replicas.start({ cluster: controlPlane, redis: redis.settings, count: 1 });
process.stdout.write(`${controlPlane.kubeconfig('admin')}\n`);
setInterval(() => undefined, 60_000);
