import { expect } from 'chai';
import { RecordMirror } from '../../src/actors/runtime/record-mirror.ts';
import type { TemplateRecord } from '../../src/model/templates/template.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';
import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const aTemplate = (name: string, version = '1'): Omit<TemplateRecord, 'revision'> => ({
  name,
  version,
  createdAt: 1,
  document: SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'host' }] },
  }),
});

const aMirror = async (mostRemoved = 0) => {
  const store = new MemoryTemplates();
  const mirror = new RecordMirror<TemplateRecord>({
    records: store,
    clock: new TestClock(),
    keyOf: ({ name }) => name,
    storeKeyOf: ({ name }) => name,
    mostRemoved,
  });
  const heard: string[] = [];
  mirror.follow(({ kind, record }, before) => {
    heard.push(`${kind} ${record.name} ${record.version} after ${before?.version ?? 'none'}`);
  });
  await mirror.start();
  return { store, mirror, heard };
};

describe('a mirror of records', () => {
  it('shows the state of the store, and sends followers each change once', async () => {
    const { store, mirror, heard } = await aMirror();
    const made = await store.create(aTemplate('a'));
    const changed = await store.update({ ...made, version: '2' });
    mirror.learn({ kind: 'put', record: changed }); // the same once more
    expect(mirror.get('a')?.version).to.equal('2');
    await store.remove(changed);

    expect(heard).to.deep.equal(['put a 1 after none', 'put a 2 after 1', 'gone a 2 after 2']);
    expect([mirror.get('a'), mirror.size]).to.deep.equal([undefined, 0]);
  });

  it('sends a new follower all current records', async () => {
    const { store, mirror } = await aMirror();
    await store.create(aTemplate('a'));
    const late: string[] = [];
    mirror.follow(({ record }) => {
      late.push(record.name);
    });

    expect(late).to.deep.equal(['a']);
  });

  it('accepts an older revision from the store, as after a restore, but not from an answer', async () => {
    const { store, mirror } = await aMirror();
    const made = await store.create(aTemplate('a'));
    await store.update({ ...made, version: '2' });

    mirror.take(made);
    expect(mirror.get('a')?.version).to.equal('2');
    mirror.learn({ kind: 'put', record: made });
    expect(mirror.get('a')?.version).to.equal('1');
  });

  it('hides a removed record until the removal is reverted', async () => {
    const { store, mirror, heard } = await aMirror(1);
    const made = await store.create(aTemplate('a'));
    mirror.forget('a');
    mirror.learn({ kind: 'put', record: made });
    expect([mirror.get('a'), mirror.isRemoved('a')]).to.deep.equal([undefined, true]);

    mirror.restore(made);
    expect(mirror.get('a')).to.equal(made);
    expect(heard).to.deep.equal(['put a 1 after none', 'gone a 1 after 1', 'put a 1 after none']);
  });

  it('writes the changes of a record in order, each on top of the last', async () => {
    const { store, mirror } = await aMirror();
    await store.create(aTemplate('a', '0'));
    const more = (record: TemplateRecord): TemplateRecord => ({
      ...record,
      version: String(Number(record.version) + 1),
    });
    await Promise.all(Array.from({ length: 5 }, () => mirror.change('a', more)));

    expect(mirror.get('a')?.version).to.equal('5');
    expect(await mirror.change('b', more)).to.equal(undefined);
  });

  it('removes a record only while its removal is allowed', async () => {
    const { store, mirror } = await aMirror();
    await store.create(aTemplate('a'));
    await mirror.remove('a', () => false);
    expect(store.records.has('a')).to.equal(true);
    await mirror.remove('a', ({ version }) => version === '1');
    expect(store.records.has('a')).to.equal(false);
  });
});
