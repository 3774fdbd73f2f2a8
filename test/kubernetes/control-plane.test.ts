import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLeftovers, type Leftover } from '../../local-cluster/leftovers.ts';
import { belongingTo } from '../../local-cluster/watched-folder.ts';
import { eventually } from '../support/harness/eventually.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { onTheCluster } from '../support/cluster/shared-cluster.ts';

describe('the test cluster', function () {
  const cluster = onTheCluster();

  it("lets sandpool create and end Pods in a tenant's namespace, and nowhere else", async () => {
    const namespace = await cluster().namespace();
    const may = async (...args: readonly string[]): Promise<string> =>
      (await cluster().kubectlAs('sandpool', ['auth', 'can-i', ...args])).stdout.trim();

    expect(await may('create', 'pods', '-n', namespace)).to.equal('yes');
    expect(await may('delete', 'pods', '-n', namespace)).to.equal('yes');
    expect(await may('create', 'pods/exec', '-n', namespace)).to.equal('yes');
    expect(await may('watch', 'pods', '-n', namespace)).to.equal('yes');
    expect(await may('list', 'pods', '-n', 'default')).to.equal('no');
    expect(await may('watch', 'pods', '--all-namespaces')).to.equal('no');
    expect(await may('create', 'pods', '-n', 'default')).to.equal('no');
    expect(await may('create', 'namespaces')).to.equal('no');
    expect(await may('create', 'clusterrolebindings')).to.equal('no');
  });

  it('hides secrets from sandpool', async () => {
    const namespace = await cluster().namespace();

    for (const place of [namespace, 'kube-system']) {
      const { exitCode, stderr } = await cluster().kubectlAs('sandpool', [
        'get',
        'secrets',
        '-n',
        place,
      ]);

      expect(exitCode).to.equal(1);
      expect(stderr).to.include('Forbidden');
    }
  });

  it('refuses a Pod that the restricted security standard forbids', async () => {
    const namespace = await cluster().namespace();
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'root', namespace },
      spec: { containers: [{ name: 'main', image: 'pause' }] },
    };

    const { exitCode, stderr } = await cluster().kubectlAs(
      'sandpool',
      ['create', '-f', '-'],
      JSON.stringify(pod),
    );

    expect(exitCode).to.equal(1);
    expect(stderr).to.include('violates PodSecurity "restricted');
  });
});

describe('the test control plane', function () {
  it('leaves no process or file behind when the process that started it is killed', async function () {
    if (process.env['TEST_KUBECONFIG'])
      skipBecause(this, 'starts a control plane, and TEST_KUBECONFIG names another cluster');
    const starter = spawn(
      process.execPath,
      [
        '--import',
        'tsx',
        fileURLToPath(new URL('../support/cluster/local-cluster-process.ts', import.meta.url)),
      ],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const [said]: unknown[] = await once(starter.stdout, 'data');
    // that of the control plane is one of several
    const folder = dirname(dirname(String(said).trim()));
    expect(
      processesOf(folder).filter(({ command }) =>
        /etcd|kube-apiserver|redis-server|serve --config/.test(command),
      ),
    ).to.have.length.at.least(4);

    starter.kill('SIGKILL');

    await eventually(
      () => processesOf(folder).length === 0 && !existsSync(folder),
      'nothing is left',
    );
  });
});

const processesOf = (folder: string): readonly Leftover[] => findLeftovers(belongingTo(folder));
