import { expect } from 'chai';
import { v7 } from 'uuid';
import { idleProgram, onRealPods, realOrder } from '../support/cluster/real-pods.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { onTheRealNode } from '../support/cluster/shared-cluster.ts';
import { OutputReading } from '../support/harness/output-reading.ts';

describe('/home/user on a real node', () => {
  const cluster = onTheRealNode();
  const pods = onRealPods(cluster);

  it('is a link to the home where the image has a /home that may be written to', async () => {
    const program = { ...idleProgram('busybox'), writable: '/home' };
    const under = await PodStreamsUnderTest.start(cluster(), { program });
    const pod = await under.pod('writable');
    const said = await under.sh(pod, 'cd /home/user && pwd && pwd -P && cd "$HOME" && pwd -P');
    await under.close();

    const [named = '', real = '', home = ''] = said.trim().split('\n');
    expect([named, real]).to.deep.equal(['/home/user', home]);
  });

  it('is the home elsewhere for what starts there, and no folder', async () => {
    const { processes } = pods().driver;
    const { id } = await pods().claimed(realOrder(pods()));
    const argv = ['sh', '-c', 'pwd -P; cd "$HOME"; pwd -P; [ -e /home/user ] || echo none'];
    const order = { processId: v7(), tenant: 't', argv, stdin: false };
    await processes.start(id, { ...order, cwd: '/home/user' });
    const reading = new OutputReading((signal) =>
      processes.output(id, order.processId, { pace: false, signal }),
    );
    await reading.until('none\n');
    const [started, home] = reading.text('stdout').split('\n');
    expect(started).to.equal(home);
  });
});
