import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  templatesAndCatalogueSuite,
  type DeploymentUnderTest,
} from '../contracts/templates-and-catalogue.ts';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { aTemplateFolder, aTenant } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

describe('the contract: templates and the catalogue on one machine', function () {
  let folder: string;
  let daemon: DaemonUnderTest;
  let deployment: DeploymentUnderTest;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-offer-'));
    mkdirSync(join(folder, 'data'));
    daemon = await DaemonUnderTest.start([
      ...line`--default-pool-replicas 0 --volumes-directories`,
      `default/data=${join(folder, 'data')},default/none=${join(folder, 'none')},default/passing=${join(folder, 'passing')}`,
    ]);
    deployment = {
      admins: [daemon.client(daemon.adminKey)],
      tenants: [daemon.client()],
      stranger: await aTenant(daemon, 'red', 'rita'),
      image: 'host',
      volumes: [
        {
          claimName: 'data',
          displayName: 'data',
          accessModes: ['ReadWriteMany'],
          storageClass: 'directory',
          phase: 'Bound',
        },
      ],
      makeVolume: async () => {
        mkdirSync(join(folder, 'passing'));
      },
      removeVolume: async () => {
        rmSync(join(folder, 'passing'), { recursive: true });
      },
    };
  });
  after(async () => {
    await daemon?.dispose();
    rmSync(folder, { recursive: true });
  });

  templatesAndCatalogueSuite('one machine', () => deployment);

  it('lists its shipped templates as global', async () => {
    const { json } = await daemon.client().get('/sandbox-templates/default');

    expect(json.template).to.include({ syncSource: 'global' });
  });
});

describe('the contract: a deployment with only templates, over a restart', function () {
  const templates = aTemplateFolder({
    mine: { description: 'from the file', containers: [{ name: 'main', image: 'host' }] },
  });
  let daemon: DaemonUnderTest;

  before(async () => {
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates.folder}
      --default-pool-replicas 0 --instance-types-provider none`);
  });
  after(async () => {
    await daemon?.dispose();
    templates.remove();
  });

  it('has empty lists and disabled feature gates', async () => {
    const client = daemon.client();

    expect((await client.get('/instancetypes')).text).to.equal('{"total":0,"items":[]}');
    expect((await client.get('/volumes')).text).to.equal('{"total":0,"items":[]}');
    expect(JSON.parse((await client.get('/feature-gates')).text)).to.include({
      volumes: false,
      instanceType: false,
    });
  });

  const shown = async () => (await daemon.client().get('/sandbox-templates/mine')).json.template;
  const file = (description: string): void =>
    writeFileSync(
      join(templates.folder, 'mine.json'),
      JSON.stringify({
        apiVersion: 'sandpool.dev/v1alpha1',
        kind: 'SandboxTemplate',
        metadata: { name: 'mine' },
        spec: { description, containers: [{ name: 'main', image: 'host' }] },
      }),
    );

  it("keeps an admin's change until the file itself changes", async () => {
    const made = {
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxTemplate',
      metadata: { name: 'made' },
      spec: { containers: [{ name: 'main', image: 'host' }] },
    };
    await daemon
      .client(daemon.adminKey)
      .post('/admin/sandbox-templates', { crdJson: JSON.stringify(made) });
    await daemon
      .client(daemon.adminKey)
      .put('/admin/sandbox-templates/mine', { description: 'from an admin' });
    await daemon.kill();
    await daemon.start();
    expect(await shown()).to.include({
      version: '2',
      description: 'from an admin',
      syncSource: 'global',
    });

    await daemon.stop();
    file('from the new file');
    await daemon.start();

    expect(await shown()).to.include({ version: '3', description: 'from the new file' });
    await within(
      'the log says so',
      () => daemon.run.stderr().includes('the file of a template changed') || undefined,
    );
    expect((await daemon.client().get('/sandbox-templates/made')).json.template)
      .to.include({ version: '1' })
      .and.not.have.property('syncSource');
  });
});
