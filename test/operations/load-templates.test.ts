import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import { templateFolder } from '../../src/embedded/template-folder.ts';
import type { InstanceDefinition } from '../../src/model/templates/template.ts';
import { nextVersion, specOfVersion } from '../../src/model/templates/template-versions.ts';
import { loadTemplates } from '../../src/services/templates/load-templates.ts';
import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';

const OTHER = { containers: [{ name: 'main', image: 'host' }] };
const SHIPPED = new URL('../../config/templates', import.meta.url).pathname;

describe('loading the templates at start', () => {
  let folder: string;
  let templates: MemoryTemplates;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-templates-'));
    templates = new MemoryTemplates();
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const put = (file: string, content: unknown): void =>
    writeFileSync(
      join(folder, file),
      typeof content === 'string' ? content : JSON.stringify(content),
    );

  const aTemplate = (name: string, spec: object = {}) => ({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'host' }], ...spec },
  });

  const load = (from = folder, check: (definition: InstanceDefinition) => void = () => undefined) =>
    loadTemplates({
      source: templateFolder(from),
      templates,
      check,
      log: quietLog,
      clock: { now: () => 42, at: () => () => undefined },
    });

  it('finds the template `default` among the shipped ones', async () => {
    const record = (await load(SHIPPED)).find(({ name }) => name === 'default');

    expect(record).to.include({ version: '1', createdAt: 42 });
    expect(record?.document.spec).to.deep.include({ idleTimeout: '30m', network: 'none' });
    expect(record?.document.spec.containers[0]).to.deep.include({
      image: 'host',
      command: ['/bin/sleep', 'infinity'],
      resources: { limits: { cpu: '1', memory: '256Mi' } },
    });
  });

  it('increments the version of changed templates only', async () => {
    put('a.json', aTemplate('a'));
    put('b.json', aTemplate('b'));
    await load();
    put('b.json', aTemplate('b', { idleTimeout: '5m' }));
    templates.writes = 0;

    const records = await load();

    expect(records.map(({ name, version }) => `${name}@${version}`)).to.have.members([
      'a@1',
      'b@2',
    ]);
    expect(templates.writes).to.equal(1);
  });

  it('keeps a template whose file is gone', async () => {
    put('a.json', aTemplate('a'));
    await load();
    rmSync(join(folder, 'a.json'));

    const [kept] = await load();
    expect(kept).to.deep.include({ name: 'a', version: '1' }).and.not.have.property('sourceHash');
    put('a.json', aTemplate('a'));
    expect((await load())[0])
      .to.include({ version: '1' })
      .and.have.property('sourceHash');
  });

  it("keeps a manager's copy of a template, and replaces it once the cluster has left", async () => {
    put('a.json', aTemplate('a', { idleTimeout: '5m' }));
    const [first] = await load();
    const { sourceHash: _sourceHash, ...record } = first!;
    const copy = { ...record, version: '7', globalId: 'an-id-of-template', managedBy: 'a-manager' };
    await templates.update({ ...copy, document: { ...copy.document, spec: OTHER } });
    expect((await load())[0]).to.deep.include({ version: '7', managedBy: 'a-manager' });
    await templates.update({ ...templates.records.get('a')!, managedBy: '' });
    expect((await load())[0])
      .to.include({ version: '8' })
      .and.not.have.any.keys('globalId', 'managedBy');
  });

  it('keeps a template that was changed by the API until its file changes', async () => {
    put('a.json', aTemplate('a'));
    const [first] = await load();
    const changed = await templates.update(
      nextVersion(first!, {
        ...first!.document,
        spec: { ...first!.document.spec, idleTimeout: '9m' },
      }),
    );
    templates.writes = 0;

    expect(await load()).to.deep.equal([changed]);
    expect(templates.writes).to.equal(0);

    put('a.json', aTemplate('a', { idleTimeout: '5m' }));
    const [record] = await load();
    expect(record).to.include({ version: '3' });
    expect(
      ['1', '2', '3'].map((version) => specOfVersion(record!, version)?.idleTimeout),
    ).to.deep.equal([undefined, '9m', '5m']);
  });

  it('creates no new version if the file equals the stored template', async () => {
    put('a.json', aTemplate('a'));
    await load();
    const { sourceHash: _hash, ...known } = templates.records.get('a')!;
    await templates.update(known);

    expect((await load())[0])
      .to.include({ version: '1' })
      .and.have.property('sourceHash');
  });

  it('reports file and field of every fault, and writes nothing', async () => {
    put('a.json', aTemplate('a'));
    put('b.json', '{ "apiVersion": ');
    put(
      'c.json',
      aTemplate('c', { idelTimeout: '5m', containers: [{ name: 'Main', image: 'host' }] }),
    );
    put('d.json', aTemplate('a'));
    put('.hidden.json', 'x');
    put('notes.txt', 'x');

    const { message } = await rejection(load());

    expect(message).to.match(/b\.json: is not JSON/);
    expect(message).to.match(/c\.json: spec\.containers\[0\]\.name: must be a DNS-1123 label/);
    expect(message).to.match(/c\.json: spec: .*idelTimeout/);
    expect(message).to.match(/d\.json: metadata\.name: a is also in .*a\.json/);
    expect(message).to.not.match(/hidden|notes/);
    expect(templates.writes).to.equal(0);
  });

  it("reports the driver's refusal with the file", async () => {
    put('a.json', aTemplate('a'));

    const { message } = await rejection(
      load(folder, () => {
        throw new DefinitionRefused('spec.containers[0].image: no such image');
      }),
    );

    expect(message).to.match(/a\.json: spec\.containers\[0\]\.image: no such image/);
  });

  it('reports a missing folder, and a file that is too large', async () => {
    expect((await rejection(load(join(folder, 'none')))).message).to.match(
      /can't read templates from .*none: ENOENT/,
    );
    put('big.json', ' '.repeat(300_000));
    expect((await rejection(load())).message).to.match(/big\.json: it is larger than 256 KiB/);
  });
});
