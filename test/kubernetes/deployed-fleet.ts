import { rmSync } from 'node:fs';
import { expect } from 'chai';
import { aCertificate } from '../../local-cluster/a-certificate.ts';
import { ControlPlane } from '../../local-cluster/control-plane.ts';
import { freePorts } from '../../local-cluster/control-plane/free-ports.ts';
import { installCustomResources } from '../../local-cluster/custom-resources.ts';
import type { ContainerImage } from '../support/cluster/container-image.ts';
import { DeployedRelease } from '../support/cluster/deployed-release.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { eventually } from '../support/harness/eventually.ts';
import { HttpClient } from '../support/harness/http-client.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { untilAnswered } from '../support/harness/until-answered.ts';

const [HUB, WEST] = ['test-hub-sandpool', 'test-west-sandpool'];
const TRUST = '/etc/sandpool/trust';

/** As docs/fleet.md has it done, each on a cluster of its own. */
export const deployedFleet = (imageOf: () => ContainerImage): void => {
  describe('a manager and a worker deployed by the chart', function () {
    const hubs = onTheControlPlane();
    const ends: (() => unknown)[] = [];
    let [manager, worker]: HttpClient[] = [];

    before(async function () {
      const certificate = aCertificate() ?? skipBecause(this, 'needs openssl');
      const { certFile, keyFile, cert, folder } = certificate;
      ends.push(() => {
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
      });
      const image = imageOf();
      const wests = await ControlPlane.start({ nodes: 1 });
      ends.push(() => wests.stop());
      const [port = 0] = await freePorts(1);
      const address = `wss://127.0.0.1:${port}`;

      const onHub = await placeOn(hubs(), await hubs().namespace());
      await onHub.create(
        ...['secret', 'tls', 'certificate', `--cert=${certFile}`, `--key=${keyFile}`],
      );
      const hub = await DeployedRelease.install({
        ...{ name: HUB, image, ...onHub },
        env: { SANDPOOL_LISTEN: `127.0.0.1:${port}` },
        values: {
          ...{ replicas: 1, role: 'manager', clusterId: 'hub' },
          ...{ fleet: { addresses: [address] }, tls: { existingSecret: 'certificate' } },
        },
      });
      ends.push(() => hub.remove());
      manager = new HttpClient(port, await hub.secretOf(HUB, 'admin.key'), { ca: cert });

      const token = await hub.replicas[0]!.exec([
        ...['clusters', 'join-token', 'west', '--data-dir', '/var/lib/sandpool'],
      ]);
      await wests.kubectl('create', 'namespace', onHub.namespace);
      const onWest = await placeOn(wests, onHub.namespace); // whose tenants' are alike then
      await onWest.create('secret', 'generic', 'join', `--from-literal=token=${token.trim()}`);
      await onWest.create('configmap', 'trust', `--from-file=ca.crt=${certFile}`);
      const west = await DeployedRelease.install({
        ...{ name: WEST, image, ...onWest },
        values: {
          ...{ replicas: 1, clusterId: 'west' },
          fleet: { managers: [address], joinTokenSecret: 'join' },
          extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: `${TRUST}/ca.crt` }],
          extraVolumes: [{ name: 'trust', configMap: { name: 'trust' } }],
          extraVolumeMounts: [{ name: 'trust', mountPath: TRUST, readOnly: true }],
        },
      });
      ends.push(() => west.remove());
      worker = new HttpClient(west.replicas[0]!.port, await west.secretOf(WEST, 'admin.key'));
    });
    after(async () => {
      for (const end of ends.reverse()) await end();
      manager?.close();
      worker?.close();
    });

    it("are linked by a token from the manager's command", async () => {
      await eventually(async () => {
        const { json } = await manager!.get('/clusters');
        return (json.items ?? []).some(
          ({ clusterID, status }) => clusterID === 'west' && status === 'Connected',
        );
      }, 'west is connected');
    });

    it('hand out a sandbox of the worker at the manager, which runs commands', async () => {
      await untilAnswered(201, () =>
        worker!.post('/sandboxpools', { name: 'default', templateName: 'default', replicas: 1 }),
      );

      const { json } = await untilAnswered(201, () =>
        manager!.post('/sandboxes', { poolName: 'west::default' }),
      );

      const id = json.sandbox?.['sandboxId'] ?? '';
      expect(id).to.match(/^west\./);
      const done = await manager!.post(`/sandboxes/${id}/exec`, { command: 'echo hello' });
      expect(done.json.stdout).to.equal('hello\n');
      expect((await manager!.delete(`/sandboxes/${id}`)).status).to.equal(200);
      expect((await worker!.delete('/sandboxpools/default?force=true')).status).to.equal(200);
    });
  });
};

const placeOn = async (cluster: ControlPlane, namespace: string) => {
  await installCustomResources(cluster);
  const create = (...what: readonly string[]): Promise<string> =>
    cluster.kubectl('create', ...what, '-n', namespace);
  return { cluster, namespace, create };
};
