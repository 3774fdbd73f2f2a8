import { podPortSuite } from '../contracts/pod-port.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { echoingProgram } from '../support/cluster/real-pods.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

const PORT = 7_000;

describe('on a real node', () => {
  const cluster = onTheRealNode();
  sampled(() => {
    podPortSuite('a port of a Pod', async () => {
      const under = await PodStreamsUnderTest.start(cluster(), { program: echoingProgram(PORT) });
      const pod = await under.pod('echoing');
      // Its server listens a moment after the container runs.
      await under.sh(
        pod,
        `until (exec 3<>/dev/tcp/127.0.0.1/${PORT}) 2>/dev/null; do sleep 0.1; done`,
      );
      return { under, pod, port: PORT };
    });
  });
});
