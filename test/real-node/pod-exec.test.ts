import { podExecSuite } from '../contracts/pod-exec.ts';
import { idleProgram } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('on a real node', () => {
  const cluster = onTheRealNode();
  for (const image of ['busybox', 'tools'] as const)
    sampled(() => podExecSuite(`exec in a Pod of ${image}`, cluster, idleProgram(image)));
});
