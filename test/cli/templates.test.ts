import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aCliDaemon, cliHere, type CliDaemon, type CliEnd } from './cli-support.ts';
import { line } from '../support/harness/line.ts';

const PYTHON = `apiVersion: sandpool.dev/v1alpha1
kind: SandboxTemplate
metadata:
  name: python
spec:
  description: Python
  containers:
    - name: main
      image: host
      resources: { limits: { cpu: 500m, memory: 512Mi } }
      ports: [{ name: web, containerPort: 8000 }]
      ephemeralStorage: 1Gi
`;

describe('sandpool templates', () => {
  let daemon: CliDaemon;
  let folder: string;
  let sandpool: (...args: readonly string[]) => Promise<CliEnd>;
  beforeEach(async () => {
    daemon = await aCliDaemon();
    daemon.operations.driver.check = () => undefined; // as of a cluster: it takes ephemeralStorage
    folder = mkdtempSync(join(tmpdir(), 'sandpool-templates-'));
    sandpool = (...args) => cliHere(args, { SANDPOOL_DATA_DIR: daemon.dataDir });
  });
  afterEach(async () => {
    rmSync(folder, { recursive: true });
    await daemon.close();
  });

  const aFile = (text: string, name = 'template.yaml'): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it('create makes a template from a file, which list and get show', async () => {
    const end = await sandpool('templates', 'create', '-f', aFile(PYTHON), '--admin');
    expect([end.code, end.stderr]).to.deep.equal([0, '']);
    expect(end.stdout)
      .to.match(/^template: +python$/m)
      .and.match(/^version: +1$/m)
      .and.match(/^memory: +512Mi$/m)
      .and.match(/^image of main: +host$/m)
      .and.match(/^ports: +web:8000$/m)
      .and.match(/^disk: +1024Mi$/m);
    expect((await sandpool('templates', 'list')).stdout).to.match(
      /^TEMPLATE +VERSION +CPU +MEMORY +DESCRIPTION\n(.*\n)*python +1 +500m +512Mi +Python\n/,
    );
    expect((await sandpool('templates', 'get', 'python')).stdout).to.equal(end.stdout);
    expect((await sandpool('templates', 'list', '-o', 'wide')).stdout).to.match(
      /DESCRIPTION +IMAGE +NETWORK +PORTS +DISK .*\npython .* host +none +web:8000 +1024Mi /,
    );
    expect(
      JSON.parse((await sandpool('templates', 'get', 'python', '-o', 'json')).stdout),
    ).to.include({ name: 'python', version: '1' });
  });

  it('get shows the template of another cluster', async () => {
    await sandpool('templates', 'create', '-f', aFile(PYTHON), '--admin');
    const get = (cluster: string) => sandpool('templates', 'get', 'python', '--cluster', cluster);
    expect(await get('local')).to.include({ code: 0, stderr: '' });
    expect((await get('west')).stderr).to.include('cluster not found');
    expect((await get('W')).stderr).to.include('clusterID');
  });

  it('get prints a document that update accepts', async () => {
    await sandpool('templates', 'create', '-f', aFile(PYTHON), '--admin');
    const manifest = (await sandpool('templates', 'get', 'python', '--manifest')).stdout;
    expect(manifest).to.match(/^kind: SandboxTemplate$/m);
    const end = await sandpool(
      ...line`templates update -f`,
      aFile(manifest.replace('512Mi', '1Gi')),
      '--admin',
    );
    expect(end.stdout)
      .to.match(/^version: +2$/m)
      .and.match(/^memory: +1Gi$/m);
  });

  it('update changes named fields only', async () => {
    await sandpool('templates', 'create', '-f', aFile(PYTHON), '--admin');
    const end = await sandpool(
      ...line`templates update python --description Snakes --pool-sizing free
        --docs ${aFile('First line\nmore', 'docs.md')} --admin`,
    );
    expect(end.stdout)
      .to.match(/^description: +Snakes$/m)
      .and.match(/^pool sizing: +free$/m)
      .and.match(/^docs: +First line$/m)
      .and.match(/^memory: +512Mi$/m);
    expect((await sandpool('templates', 'update', 'python', '--admin')).stderr).to.include(
      'there is nothing to change',
    );
    expect((await sandpool('templates', 'update', 'other', '-f', aFile(PYTHON), '--admin')).stderr)
      .to.include('describes python, not other')
      .and.include('metadata.name');
  });

  it('delete removes each named template that no pool uses', async () => {
    await sandpool('templates', 'create', '-f', aFile(PYTHON), '--admin');
    await sandpool(
      ...line`templates create -f`,
      aFile(PYTHON.replace('name: python', 'name: default')),
      '--admin',
    );
    const used = await sandpool('templates', 'delete', 'default', '--admin');
    expect(used.code).to.equal(1);
    expect(used.stderr)
      .to.include('TEMPLATE_IN_USE')
      .and.include('its pools: default')
      .and.include('pools update POOL --template');
    expect(await sandpool('templates', 'delete', 'python', '--admin')).to.deep.equal({
      code: 0,
      stdout: 'python deleted\n',
      stderr: '',
    });
    expect((await sandpool('templates', 'get', 'python')).stderr)
      .to.include('SANDBOX_TEMPLATE_NOT_FOUND')
      .and.include('sandpool templates list');
  });

  it('a wrong field is named by its path, and a tenant is referred to the admin key', async () => {
    const end = await sandpool(
      ...line`templates create -f`,
      aFile(PYTHON.replace('image: host', 'image: host\n      privileged: true')),
      '--admin',
    );
    expect([end.code, end.stderr]).to.satisfy(
      ([code, text]: [number, string]) =>
        code === 1 && text.includes('spec.containers[0]') && text.includes('privileged'),
    );
    expect((await sandpool('templates', 'create', '-f', aFile(PYTHON))).stderr).to.include(
      'use the admin key: --admin',
    );
  });
});
