import { podExecSuite } from '../contracts/pod-exec.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

describe('on simulated nodes', () => {
  podExecSuite('exec in a Pod', onTheControlPlane());
});
