import { expect } from 'chai';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import { templateResource } from '../../src/k8s/records/template-resource.ts';
import type { ResourceObject } from '../../src/k8s/api/resource.ts';
import { SandboxTemplateSchema, type TemplateRecord } from '../../src/model/templates/template.ts';

const document = (description: string) =>
  SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: { description, containers: [{ name: 'main', image: 'busybox' }] },
  });
const RECORD: TemplateRecord = {
  ...{ name: 't', revision: '7', version: '3', createdAt: 1_000, document: document('third') },
  earlier: [{ version: '2', spec: JSON.stringify(document('second').spec) }],
  globalId: 'an-id-of-template',
};

describe('a template edited by hand', () => {
  const resource = templateResource({ check: () => undefined });
  /** As the daemon writes it after somebody edited the object of this record. */
  const edited = (record: TemplateRecord) => {
    const object = {
      metadata: { name: 't', resourceVersion: '8' },
      ...resource.write(record),
    } as unknown as ResourceObject;
    const settled = resource.initialize?.({
      ...object,
      spec: document('by hand').spec,
    } as ResourceObject);
    const read = resource.read({ ...object, ...settled } as ResourceObject);
    return read.kind === 'record' ? read.record : undefined;
  };

  it('gets its next version, which a manager sends to all clusters', () => {
    expect(edited(RECORD)).to.deep.include({
      version: '4',
      document: document('by hand'),
      globalId: RECORD.globalId,
    });
    expect(edited(RECORD)?.earlier?.map(({ version }) => version)).to.deep.equal(['3', '2']);
  });

  it("reverts if it is a copy of a manager's template", () => {
    const copy = { ...RECORD, managedBy: 'a-manager' };
    expect(edited(copy)).to.deep.equal({ ...copy, revision: '8' });
  });

  it('reverts if it is a copy, even after an edit to an invalid template', () => {
    const picky = templateResource({
      check: ({ containers: [container] }) => {
        if (container?.image === 'none') throw new DefinitionRefused('spec.containers[0]: no');
      },
    });
    const copy = { ...RECORD, managedBy: 'a-manager' };
    for (const spec of [{}, { containers: [{ name: 'main', image: 'none' }] }, { containers: 7 }]) {
      const written = { metadata: { name: 't', resourceVersion: '8' }, ...picky.write(copy) };
      const object = { ...written, spec } as unknown as ResourceObject;
      expect(picky.read(object).kind).to.equal('uninitialized');
      const settled = { ...object, ...picky.initialize?.(object) } as ResourceObject;
      expect(picky.read(settled)).to.deep.include({
        kind: 'record',
        record: { ...copy, revision: '8' },
      });
      const own = { ...object, ...picky.write(RECORD), spec } as unknown as ResourceObject;
      expect(picky.read(own).kind).to.equal('wrong');
    }
    const strict = templateResource({
      check: () => {
        throw new DefinitionRefused('not here');
      },
    });
    const unchanged = { metadata: { name: 't' }, ...strict.write(copy) };
    expect(strict.read(unchanged as unknown as ResourceObject).kind).to.equal('wrong');
  });

  it('belongs to the cluster once the cluster has left the manager', () => {
    const left = edited({ ...RECORD, managedBy: '' });
    expect(left).to.include({ version: '4' });
    expect(left).to.not.have.any.keys('globalId', 'managedBy');
  });
});
