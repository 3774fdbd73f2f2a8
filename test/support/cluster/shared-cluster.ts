import { ControlPlane } from '../../../local-cluster/control-plane.ts';
import type { Cluster } from '../../../local-cluster/control-plane/cluster.ts';
import { outsideCluster } from './outside-cluster.ts';
import { skipBecause } from '../harness/skip-because.ts';

const NODES = 5;
/**
 * One for all suites of a mocha process: it starts with the first that asks, and stops after the
 * last.
 */
let shared: Promise<Cluster> | undefined;
let real: Promise<ControlPlane> | undefined;

/**
 * The cluster of this run, from the suite's first hook on: a control plane of its own, or what
 * TEST_KUBECONFIG names.
 */
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

/**
 * The same, for suites that restart its parts or need pods that kwok plays; elsewhere they are
 * skipped.
 */
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

/**
 * One with a real node, and no simulated one; skipped without `script/test long real-node`.
 */
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
/** Has it called before the cluster stops that suites share. */
export const beforeTheClusterStops = (end: () => Promise<void>): void => {
  ends.push(end);
};

// Mocha's root suite is current while a test file is loaded, and files import this one at their
// top.
after('the shared cluster', async function () {
  for (const end of ends) await end();
  // or the hook that asked for it has failed
  for (const asked of [shared, real]) await (await asked?.catch(() => undefined))?.stop();
});
