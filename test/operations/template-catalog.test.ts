import { expect } from 'chai';
import { SandboxTemplateSchema, type TemplateRecord } from '../../src/model/templates/template.ts';
import { TemplateCatalog } from '../../src/actors/pool/template-catalog.ts';
import { MemoryTemplates } from '../support/fakes/memory-templates.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const draft = (name: string, createdAt = 1): Omit<TemplateRecord, 'revision'> => ({
  name,
  version: '1',
  createdAt,
  document: SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'host' }] },
  }),
});

describe('the catalog of templates', () => {
  const aCatalog = () => {
    const templates = new MemoryTemplates();
    return { templates, catalog: new TemplateCatalog({ templates, clock: new TestClock() }) };
  };

  it('lists the newest first, then by descending name, and follows the store', async () => {
    const { templates, catalog } = aCatalog();
    await catalog.start();
    for (const [name, createdAt] of [
      ['a', 5],
      ['b', 5],
      ['c', 3],
      ['d', 9],
    ] as const)
      await templates.create(draft(name, createdAt));
    const names = (offset: number, limit: number) =>
      catalog.page(offset, limit).records.map(({ name }) => name);

    expect(names(0, 10)).to.deep.equal(['d', 'b', 'a', 'c']);
    expect(names(1, 2)).to.deep.equal(['b', 'a']);
    expect(catalog.page(9, 2)).to.deep.equal({ records: [], total: 4 });
    await templates.remove(templates.records.get('d')!);
    expect(names(0, 10)).to.deep.equal(['b', 'a', 'c']);
  });

  it('reads an unknown template from the store, once for all who need it', async () => {
    const { templates, catalog } = aCatalog();
    const made = await templates.create(draft('new'));
    templates.get = async () => {
      templates.reads += 1;
      catalog.learn({ kind: 'put', record: made }); // as a store reports what it reads
      return made;
    };

    await Promise.all([catalog.lookUp('new'), catalog.lookUp('new'), catalog.lookUp('new')]);

    expect(catalog.get('new')).to.deep.equal(made);
    await catalog.lookUp('new');
    expect(templates.reads).to.equal(1);
  });
});
