import { podTerminalSuite } from '../contracts/pod-terminal.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';

describe('on simulated nodes', () => {
  podTerminalSuite('a terminal in a Pod', onTheControlPlane());
});
