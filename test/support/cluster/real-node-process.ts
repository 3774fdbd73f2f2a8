/** Starts a control plane with a real node and a Pod, and ends both with its input. */
import { once } from 'node:events';
import { ControlPlane } from '../../../local-cluster/control-plane.ts';
import { installCustomResources } from '../../../local-cluster/custom-resources.ts';
import { PodDriver } from './a-pod-driver.ts';
import { realOrder } from './real-pods.ts';

const cluster = await ControlPlane.start({ realNode: process.env['TEST_REAL_NODE'] ?? '' });
await installCustomResources(cluster);
const pods = await PodDriver.watching(cluster, await cluster.namespace());
await pods.launched(realOrder(pods));
await pods.close();
process.stdout.write('a Pod runs\n');
await once(process.stdin.resume(), 'end');
await cluster.stop();
