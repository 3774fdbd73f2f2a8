import { podTerminalSuite } from '../contracts/pod-terminal.ts';
import { idleProgram } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('on a real node', () => {
  const cluster = onTheRealNode();
  for (const image of ['busybox', 'tools'] as const)
    sampled(() => podTerminalSuite(`a terminal in a Pod of ${image}`, cluster, idleProgram(image)));
});
