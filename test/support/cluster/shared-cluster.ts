import { ControlPlane } from '../../../local-cluster/control-plane.ts';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { outsideCluster } from './outside-cluster.ts';
import { skipBecause } from '../harness/skip-because.ts';

const NODES = 5;
/** Shared by the suites of a mocha process. */
let shared: Promise<Cluster> | undefined;
let real: Promise<ControlPlane> | undefined;

/** From the suite's first hook on: a new control plane, or TEST_KUBECONFIG's cluster. */
export const onTheCluster = (): (() => Cluster) => {
  let cluster: Cluster | undefined;
  before('a cluster', async function () {
    const outside = process.env['TEST_KUBECONFIG'];
    cluster = await (shared ??= outside
      ? outsideCluster(outside)
      : ControlPlane.start({ nodes: NODES }));
  });
  return () => known(cluster);
};

/** For suites that restart its parts or need kwok; skipped without them. */
export const onTheControlPlane = (): (() => ControlPlane) => {
  const cluster = onTheCluster();
  let controlPlane: ControlPlane | undefined;
  before('a control plane', function () {
    const given = cluster();
    if (given instanceof ControlPlane) controlPlane = given;
    else
      skipBecause(
        this,
        'needs a control plane of its own, and TEST_KUBECONFIG names another cluster',
      );
  });
  return () => known(controlPlane);
};

/** Only a real node; skipped without `script/test long real-node`. */
export const onTheRealNode = (): (() => ControlPlane) => {
  let controlPlane: ControlPlane | undefined;
  before('a real node', async function () {
    const realNode =
      process.env['TEST_REAL_NODE'] ??
      skipBecause(this, 'needs what script/real-node makes: script/test long real-node');
    controlPlane = await (real ??= ControlPlane.start({ realNode }));
  });
  return () => known(controlPlane);
};

const known = <T>(value: T | undefined): T => {
  if (value === undefined)
    throw new Error('there is a cluster from the first before hook on, not earlier');
  return value;
};

const ends: (() => Promise<void>)[] = [];
/** Runs before the shared cluster stops. */
export const beforeTheClusterStops = (end: () => Promise<void>): void => {
  ends.push(end);
};

// Mocha's root suite is current while a file is loaded, and this file is imported at its top.
after('the shared cluster', async function () {
  for (const end of ends) await end();
  // or the hook that started it failed
  for (const asked of [shared, real]) await (await asked?.catch(() => undefined))?.stop();
});
