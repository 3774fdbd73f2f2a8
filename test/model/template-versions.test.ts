import { expect } from 'chai';
import type {
  SandboxTemplateDocument,
  TemplateRecord,
} from '../../src/model/templates/template.ts';
import { nextVersion, specOfVersion } from '../../src/model/templates/template-versions.ts';

const saying = (
  description: string,
  more: Partial<SandboxTemplateDocument['spec']> = {},
): SandboxTemplateDocument => ({
  apiVersion: 'sandpool.dev/v1alpha1',
  kind: 'SandboxTemplate',
  metadata: { name: 'small' },
  spec: { description, containers: [{ name: 'main', image: 'host' }], ...more },
});

const first: TemplateRecord = {
  name: 'small',
  revision: '7',
  version: '1',
  createdAt: 5,
  document: saying('1'),
};

const changed = (times: number, padding = ''): TemplateRecord => {
  let record = first;
  for (let version = 2; version <= times + 1; version += 1)
    record = nextVersion(record, saying(`${version}${padding}`));
  return record;
};

describe('versions of a template', () => {
  it('are whole numbers as text, each with its content', () => {
    const record = changed(2);

    expect(record).to.deep.include({
      name: 'small',
      revision: '7',
      version: '3',
      createdAt: 5,
      document: saying('3'),
    });
    expect(
      ['1', '2', '3', '4'].map((version) => specOfVersion(record, version)?.description),
    ).to.deep.equal(['1', '2', '3', undefined]);
    expect(specOfVersion(record, '1')).to.deep.equal(saying('1').spec);
  });

  it('are limited to 20, including the current one', () => {
    const record = changed(30);

    const kept = Array.from({ length: 33 }, (_, version) => version).filter(
      (version) => specOfVersion(record, String(version)) !== undefined,
    );
    expect(kept).to.deep.equal(Array.from({ length: 20 }, (_, index) => index + 12));
  });

  it('are fewer if they are large, but at least one', () => {
    const record = changed(30, 'x'.repeat(100_000));

    expect(record.earlier).to.have.length(2);
    expect(changed(3, 'x'.repeat(300_000)).earlier).to.deep.equal([]);
    expect(specOfVersion(record, '31')).to.not.equal(undefined);
  });

  it('are stored without their docs', () => {
    const record = nextVersion(
      { ...first, document: saying('1', { docs: 'long' }) },
      saying('2', { docs: 'longer' }),
    );

    expect([specOfVersion(record, '1'), specOfVersion(record, '2')]).to.deep.equal([
      saying('1').spec,
      saying('2').spec,
    ]);
    expect(record.document.spec.docs).to.equal('longer');
  });
});
