import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { WebSocket } from 'ws';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { echoServer } from '../support/builders/echo-server.ts';
import {
  aTemplateFolder,
  bodyOf,
  claim,
  clear,
  giveBack,
  poolStatus,
  run,
  stocked,
} from '../support/harness/on-a-daemon.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { webServer } from '../support/builders/web-server.ts';
import { line } from '../support/harness/line.ts';

const container = (command: readonly string[], more: object = {}) => ({
  containers: [{ name: 'main', image: 'host', command, ...more }],
});

/** One of them is on the host's network, where each port is somebody's. */
const templatesWith = (ownPort: number, hostPort: number) => ({
  perl: {
    ...container(webServer(8_000)),
    endpoints: [
      { name: 'app', port: 8_000, readinessProbe: { httpGet: {} } },
      { name: 'none', port: 9_000 },
    ],
  },
  echo: {
    ...container(echoServer(7_000)),
    endpoints: [{ name: 'raw', port: 7_000, readinessProbe: { tcpSocket: {} } }],
  },
  flaky: {
    ...container(['/bin/sleep', 'infinity'], {
      readinessProbe: {
        exec: { command: ['/usr/bin/test', '!', '-e', '/tmp/broken'] },
        periodSeconds: 1,
        timeoutSeconds: 20,
        failureThreshold: 1,
      },
    }),
  },
  never: {
    ...container(['/bin/sleep', 'infinity'], {
      readinessProbe: {
        exec: { command: ['/bin/sh', '-c', 'echo no luck; exit 3'] },
        periodSeconds: 1,
      },
    }),
    startupTimeout: '4s', // in which its probe runs
  },
  onhost: {
    ...container(webServer(ownPort)),
    endpoints: [
      { name: 'app', port: ownPort },
      { name: 'daemon', port: hostPort },
    ],
    network: 'host',
  },
});

describe('endpoints and probes on a real daemon', function () {
  let daemon: DaemonUnderTest;
  let client: HttpClient;
  let templates: ReturnType<typeof aTemplateFolder>;
  let hostPort: number;

  before(async () => {
    const [ownPort = 0, another = 0] = await freePorts(2);
    hostPort = another;
    templates = aTemplateFolder(templatesWith(ownPort, hostPort));
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates.folder}
      --default-pool-replicas 0`);
    client = daemon.client();
  });
  afterEach(() => clear(client));
  after(async () => {
    await daemon.dispose();
    templates.remove();
  });

  const pool = async (name: string, templateName: string, replicas = 1): Promise<void> => {
    await client.post('/sandboxpools', { name, templateName, replicas });
    await stocked(client, replicas, name);
  };
  const urls = async (id: string): Promise<Record<string, string>> =>
    (
      (await client.get(`/sandboxes/${id}`)).json.sandbox as unknown as {
        readonly endpoints: Record<string, string>;
      }
    ).endpoints;

  it('reach the server of the shipped template, which serves files written inside', async () => {
    await pool('web', 'web');
    const id = await claim(client, 'web');
    expect(await urls(id)).to.deep.equal({
      web: `http://127.0.0.1:${daemon.run.port}/sandboxes/${id}/endpoints/web/`,
    });
    await run(client, id, 'echo from inside > /home/sandbox/page.txt');
    const page = await client.get(`/v1/sandboxes/${id}/endpoints/web/page.txt`);
    expect([page.status, page.text]).to.deep.equal([200, 'from inside\n']);
    expect((await client.get(`/sandboxes/local.${id}/endpoints/web/`)).text).to.contain(
      'Hello from a sandbox',
    );
    expect(bodyOf(await client.get(`/sandboxes/${id}/is_ready`))).to.deep.equal({
      sandboxId: id,
      ready: true,
      endpoints: { web: { ready: true, message: 'its probe passes' } },
    });
  });

  it("hide the daemon's key and sockets from a server inside", async () => {
    await pool('inside', 'perl');
    const id = await claim(client, 'inside');
    const { text } = await client.get(`/sandboxes/${id}/endpoints/app/`);
    expect(text)
      .to.contain('Host: localhost:8000')
      .and.to.not.contain(client.key ?? 'no key');
    const seen = (
      await run(
        client,
        id,
        'cat /proc/net/unix /proc/*/cmdline /proc/*/environ 2>/dev/null | tr "\\0" "\\n"; ls /proc | grep -c "^[0-9]"',
      )
    ).stdout;
    expect(seen)
      .to.not.contain('fwd')
      .and.to.not.contain('forward')
      .and.to.not.contain(daemon.dataDir);
    expect(
      (
        await run(client, id, [
          'perl',
          '-MIO::Socket::INET',
          '-e',
          `print IO::Socket::INET->new("127.0.0.1:${daemon.run.port}") ? "reached" : "refused"`,
        ])
      ).stdout,
    ).to.equal('refused');
  });

  it('refuse an upgrade that the sandbox does not accept', async () => {
    await pool('sockets', 'echo');
    const id = await claim(client, 'sockets');
    // The server echoes the handshake itself, which is no answer to it.
    const socket = new WebSocket(
      `ws://127.0.0.1:${daemon.run.port}/sandboxes/${id}/endpoints/raw/`,
      { headers: { 'SERVICE-API-KEY': client.key ?? '' } },
    );
    const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect(response.statusCode).to.equal(502);
    socket.on('error', () => {}).terminate();
  });

  it('count traffic as activity, and close connections when the sandbox ends', async () => {
    await pool('idle', 'perl', 2);
    const id = await claim(client, 'idle', { idleTimeout: '8s' });
    const hanging = httpRequest({
      host: '127.0.0.1',
      port: daemon.run.port,
      path: `/sandboxes/${id}/endpoints/app/hang`,
      headers: { 'SERVICE-API-KEY': client.key ?? '' },
    });
    const answered = once(hanging, 'response') as Promise<IncomingMessage[]>;
    hanging.end();
    const unused = await claim(client, 'idle', { idleTimeout: '8s' });
    await within('one that was claimed after it, and has no traffic, is gone', async () => {
      expect((await client.get(`/sandboxes/${id}/endpoints/app/`)).status).to.equal(200);
      return (await client.get(`/sandboxes/${unused}`)).status === 404 || undefined;
    });
    // a request that waits is no traffic: it ended with the sandbox
    const [response] = await answered;
    expect(response?.statusCode).to.equal(502);
    response?.resume();
    await within(
      'it is gone',
      async () => (await client.get(`/sandboxes/${id}`)).status === 404 || undefined,
    );
  });

  it('make an instance wait for its probes, and keep a failing one from claims', async () => {
    await pool('flaky', 'flaky', 2);
    const id = await claim(client, 'flaky');
    expect(bodyOf(await client.get(`/sandboxes/${id}/is_ready`))).to.deep.equal({
      sandboxId: id,
      ready: true,
      endpoints: {},
    });
    await run(client, id, ['touch', '/tmp/broken']);
    expect((await client.get(`/sandboxes/${id}/is_ready`)).status).to.equal(503);
    const [idle] = (await client.get('/sandboxes?phase=Idle&poolName=flaky')).json.items ?? [];
    expect((await poolStatus(client, 'flaky'))['idleReplicas']).to.equal(1);
    expect(idle).to.deep.include({ status: 'Idle' });
    await giveBack(client, id);
  });

  it("count an instance that never gets ready as a failed start, with the probe's result", async () => {
    await client.post('/sandboxpools', { name: 'never', templateName: 'never', replicas: 1 });
    await within(
      'the reason in the log',
      () =>
        daemon.run.stderr().includes('readinessProbe: /bin/sh ended with 3: no luck') || undefined,
    );
    await client.delete('/sandboxpools/never?force=true');
  });

  it("on the host's network reach only the sandbox's own listeners", async function () {
    if (process.getuid?.() !== 0)
      skipBecause(this, "without root all sandboxes have the daemon's uid");
    await pool('onhost', 'onhost');
    const id = await claim(client, 'onhost');
    await within(
      'its own port',
      async () => (await client.get(`/sandboxes/${id}/endpoints/app/`)).status === 200 || undefined,
    );
    const server = createServer((_request, response) => response.end('of the host')).listen(
      hostPort,
      '127.0.0.1',
    );
    await once(server, 'listening');
    const refused = await client.get(`/sandboxes/${id}/endpoints/daemon/`);
    server.close();
    server.closeAllConnections();
    expect(refused.status).to.equal(502);
    expect(refused.json.error).to.contain("held by a process that is not the sandbox's");
  });
});
