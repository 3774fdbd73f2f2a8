import { expect } from 'chai';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLeftovers, type Leftover } from '../../local-cluster/leftovers.ts';
import { belongingTo } from '../../local-cluster/watched-folder.ts';
import { aPod } from '../support/builders/a-pod.ts';
import type { Cluster } from '../../local-cluster/control-plane/cluster.ts';
import { eventually } from '../support/harness/eventually.ts';
import { onTheCluster, onTheControlPlane } from '../support/cluster/shared-cluster.ts';

describe('the cluster of the tests', function () {
  const cluster = onTheCluster();

  it('lets sandpool make and end pods in a namespace of a tenant, and nowhere else', async () => {
    const namespace = await cluster().namespace();
    const may = async (...args: readonly string[]): Promise<string> =>
      (await cluster().kubectlAs('sandpool', ['auth', 'can-i', ...args])).stdout.trim();

    expect(await may('create', 'pods', '-n', namespace)).to.equal('yes');
    expect(await may('delete', 'pods', '-n', namespace)).to.equal('yes');
    expect(await may('create', 'pods/exec', '-n', namespace)).to.equal('yes');
    expect(await may('watch', 'pods', '--all-namespaces')).to.equal('yes');
    expect(await may('create', 'pods', '-n', 'default')).to.equal('no');
    expect(await may('create', 'namespaces')).to.equal('no');
    expect(await may('create', 'clusterrolebindings')).to.equal('no');
  });

  it('keeps secrets from sandpool', async () => {
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

  it('refuses a pod that the restricted security standard refuses', async () => {
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

describe('the control plane of the tests', function () {
  const controlPlane = onTheControlPlane();

  it('runs a pod on a node, at an address of this machine', async () => {
    const namespace = await aRunningPod(controlPlane(), 'a');

    const pod = JSON.parse(
      await controlPlane().kubectl('get', 'pod', 'a', '-n', namespace, '-o', 'json'),
    ) as Pod;

    expect(pod.spec.nodeName).to.match(/^node-\d$/);
    expect(pod.status.podIP).to.match(/^127\./);
    expect(pod.status.containerStatuses?.map(({ ready }) => ready)).to.deep.equal([true]);
  });

  it('makes of a pod what its label says', async () => {
    const namespace = await controlPlane().namespace();
    const stages = ['slow', 'stuck', 'unpullable', 'fails', 'crashes', 'vanishes', 'lingers'];
    await controlPlane().apply(
      stages.map((stage) => aPod({ name: stage, namespace, stage, delay: '300ms' })),
    );
    const seen = async (): Promise<string> =>
      controlPlane().kubectl('get', 'pods', '-n', namespace, '-o', STAGES);

    await eventually(async () => (await seen()) === WANTED, 'each pod is where its label says');

    await controlPlane().kubectl(
      'delete',
      'pod',
      'lingers',
      '-n',
      namespace,
      '--grace-period=30',
      '--wait=false',
    );
    expect(await seen()).to.equal(WANTED);
    await controlPlane().kubectl(
      'label',
      'pod',
      'lingers',
      '-n',
      namespace,
      'test.sandpool.dev/stage-',
    );
    await controlPlane().kubectl(
      'wait',
      '--for=delete',
      'pod/lingers',
      '-n',
      namespace,
      '--timeout=60s',
    );
  });

  it('leaves a pod that is deleted without grace to the API server, as a kubelet does', async () => {
    const namespace = await controlPlane().namespace();
    const [pods, last] = [['a', 'b', 'c', 'd'], 'last'];
    const kubectl = (...args: readonly string[]) =>
      controlPlane().kubectl(...args, '-n', namespace);

    // Other suites' pods may still be deleted meanwhile, but not each time.
    await eventually(async () => {
      await controlPlane().apply([...pods, last].map((name) => aPod({ name, namespace })));
      await kubectl('wait', '--for=condition=Ready', 'pods', '--all', '--timeout=30s');
      const before = await refusedDeletes(controlPlane());
      await kubectl('delete', 'pod', ...pods, '--grace-period=0', '--force');
      // its end is kwok's, which has seen the others' by then
      await kubectl('delete', 'pod', last, '--grace-period=1');
      return (await refusedDeletes(controlPlane())) === before;
    }, 'no pod is deleted that is gone');
  });

  it('runs a command in a pod: output, errors, input and exit code', async () => {
    const namespace = await aRunningPod(controlPlane(), 'a');
    const exec = (...command: readonly string[]) => [
      'exec',
      '-i',
      '-n',
      namespace,
      'a',
      '--',
      ...command,
    ];

    const ended = await controlPlane().kubectlAs(
      'sandpool',
      exec('sh', '-c', 'echo out; echo err >&2; exit 7'),
    );
    expect(ended.exitCode).to.equal(7);
    expect(ended.stdout).to.equal('out\n');
    expect(ended.stderr).to.include('err\n');

    const copied = await controlPlane().kubectlAs('sandpool', exec('cat'), 'all of the input');
    expect(copied).to.deep.equal({ exitCode: 0, stdout: 'all of the input', stderr: '' });
    expect(
      (await controlPlane().kubectlAs('sandpool', exec('sh', '-c', 'kill -KILL $$'))).exitCode,
    ).to.equal(137);
  });

  it('follows the log of a container', async () => {
    const namespace = await aRunningPod(controlPlane(), 'a');
    const follower = spawnKubectl(controlPlane(), ['logs', '--follow', '-n', namespace, 'a']);
    let seen = '';
    follower.stdout?.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });

    for (const line of ['first', 'second']) {
      controlPlane().print(line);
      await eventually(() => seen.includes(`${line}\n`), `the follower shows "${line}"`);
    }
    follower.kill();
    await once(follower, 'close');
  });

  it('forwards a port', async () => {
    const namespace = await aRunningPod(controlPlane(), 'a');
    const server = createServer((_request, response) =>
      response.end('from behind the port'),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    await controlPlane().forward(8080, typeof address === 'object' && address ? address.port : 0);
    const forwarder = spawnKubectl(controlPlane(), ['port-forward', '-n', namespace, 'a', ':8080']);
    let said = '';
    forwarder.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    await eventually(() => /127\.0\.0\.1:\d+/.test(said), 'kubectl says where it listens');

    expect(
      await (await fetch(`http://${/127\.0\.0\.1:\d+/.exec(said)?.[0] ?? ''}/`)).text(),
    ).to.equal('from behind the port');

    forwarder.kill();
    server.close();
    server.closeAllConnections();
    await once(forwarder, 'close');
  });

  it('lets in who shows a client certificate', async () => {
    const kubeconfig = await controlPlane().certificateKubeconfig('sandpool');

    const { stdout } = await controlPlane().kubectlAs('sandpool', [
      'auth',
      'whoami',
      '-o',
      'jsonpath={.status.userInfo.username}',
      `--kubeconfig=${kubeconfig}`,
    ]);

    expect(stdout).to.equal('sandpool');
  });

  it('makes a node unready, and ready again', async () => {
    await controlPlane().kubectl('label', 'node', 'node-1', 'test.sandpool.dev/stage=unready');
    await controlPlane().kubectl(
      'wait',
      '--for=condition=Ready=false',
      'node/node-1',
      '--timeout=60s',
    );
    await controlPlane().kubectl('label', 'node', 'node-1', 'test.sandpool.dev/stage-');
    await controlPlane().kubectl('wait', '--for=condition=Ready', 'node/node-1', '--timeout=60s');
  });

  for (const component of ['kube-apiserver', 'etcd'] as const) {
    it(`keeps what was written when ${component} is killed and starts again`, async () => {
      const namespace = await aRunningPod(controlPlane(), 'a');
      const uid = await controlPlane().kubectl(
        'get',
        'pod',
        'a',
        '-n',
        namespace,
        '-o',
        'jsonpath={.metadata.uid}',
      );
      const before = controlPlane().pidOf(component);

      await controlPlane().kill(component);
      expect(controlPlane().pidOf(component)).to.equal(undefined);
      await controlPlane().begin(component);

      expect(controlPlane().pidOf(component)).to.be.a('number').and.not.equal(before);
      await eventually(
        async () =>
          (await controlPlane().kubectlAs('admin', ['get', '--raw', '/readyz'])).exitCode === 0,
        'the API server answers',
      );
      expect(
        await controlPlane().kubectl(
          'get',
          'pod',
          'a',
          '-n',
          namespace,
          '-o',
          'jsonpath={.metadata.uid}',
        ),
      ).to.equal(uid);
      await controlPlane().apply(aPod({ name: 'b', namespace }));
      await controlPlane().kubectl(
        'wait',
        '--for=condition=Ready',
        'pod/b',
        '-n',
        namespace,
        '--timeout=120s', // the scheduler may ask again only after a while
      );
    });
  }

  it('leaves no process and no file, of Redis and replicas neither, when the process that started them is killed', async () => {
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

const STAGES =
  'jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.status.containerStatuses[0].state.waiting.reason}{.status.containerStatuses[0].state.terminated.exitCode}{"\\n"}{end}';
const WANTED =
  'crashes Failed 137\nfails Failed 1\nlingers Running \nslow Running \nstuck Pending \nunpullable Pending ImagePullBackOff\n';

interface Pod {
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly ready: boolean }[];
  };
}

/** In a namespace of its own, which it answers. */
const aRunningPod = async (cluster: Cluster, name: string): Promise<string> => {
  const namespace = await cluster.namespace();
  await cluster.apply(aPod({ name, namespace }));
  await cluster.kubectl(
    'wait',
    '--for=condition=Ready',
    `pod/${name}`,
    '-n',
    namespace,
    '--timeout=120s',
  );
  return namespace;
};

/** How many requests to delete a pod the API server has answered with 404, by its own metrics. */
const refusedDeletes = async (cluster: Cluster): Promise<number> =>
  (await cluster.kubectl('get', '--raw', '/metrics'))
    .split('\n')
    .filter(
      (line) =>
        line.startsWith('apiserver_request_total{') &&
        ['code="404"', 'resource="pods"', 'verb="DELETE"'].every((label) => line.includes(label)),
    )
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);

const spawnKubectl = (cluster: Cluster, args: readonly string[]): ChildProcess =>
  spawn(cluster.kubectlProgram, [`--kubeconfig=${cluster.kubeconfig('sandpool')}`, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

const processesOf = (folder: string): readonly Leftover[] => findLeftovers(belongingTo(folder));
