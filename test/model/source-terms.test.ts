import { expect } from 'chai';
import type { PoolSource } from '../../src/model/pools/pool-source.ts';
import { renderPool, SourceFault } from '../../src/model/pools/render-pool.ts';
import type { SourceTerms } from '../../src/model/pools/source-terms.ts';
import { SandboxTemplateSchema } from '../../src/model/templates/template.ts';

const templateOf = (...images: readonly string[]) =>
  SandboxTemplateSchema.shape.spec.parse({
    containers: images.map((image, index) => ({ name: `c${index}`, image })),
  });

describe('the limits on pool sources', () => {
  const faultOf = (source: PoolSource, terms: Partial<SourceTerms>): string => {
    const document = {
      apiVersion: 'sandpool.dev/v1alpha1' as const,
      kind: 'SandboxTemplate' as const,
      metadata: { name: 'stored' },
      spec: templateOf('registry.invalid/admins:1'),
    };
    try {
      renderPool(source, {
        template: (name) => ({ name, revision: '1', version: '1', createdAt: 1, document }),
        instanceType: () => undefined,
        terms: { inlineTemplates: 'everyone', images: [], ...terms },
      });
    } catch (error) {
      if (error instanceof SourceFault) return error.field;
      throw error;
    }
    return 'none';
  };
  const images = ['a.example/team', 'b.example/', 'host'];

  for (const [image, isAllowed] of [
    ['a.example/team', true],
    ['a.example/team:1', true],
    ['a.example/team/tool@sha256:ab', true],
    ['b.example/x', true],
    ['host', true],
    ['a.example/teams', false],
    ['a.example/team-b/x', false],
    ['a.example', false],
    ['evil.example/a.example/team', false],
    ['b.example', false],
    ['hostile', false],
    ['host:5000/evil', false],
    ['host:1', true],
  ] as const) {
    it(`${isAllowed ? 'allow' : 'refuse'} ${image} by the list of images`, () => {
      expect(faultOf({ overrides: { image } }, { images })).to.equal(
        isAllowed ? 'none' : 'overrides.image',
      );
      expect(faultOf({ template: templateOf(image) }, { images })).to.equal(
        isAllowed ? 'none' : 'template.containers[0].image',
      );
    });
  }

  it('apply to the images of instances, in every container', () => {
    expect(faultOf({ template: templateOf('host', 'evil') }, { images })).to.equal(
      'template.containers[1].image',
    );
    expect(
      faultOf({ template: templateOf('evil', 'host'), overrides: { image: 'host' } }, { images }),
    ).to.equal('none');
    const overrides = { image: 'evil', podCreationImagePolicy: 'PoolDefaultImage' } as const;
    expect(faultOf({ template: templateOf('host'), overrides }, { images })).to.equal('none');
    expect(faultOf({ templateName: 'stored', overrides: { image: 'evil' } }, { images })).to.equal(
      'overrides.image',
    );
  });

  it('do not apply to a stored template, and allow every image without a list', () => {
    expect(faultOf({ templateName: 'stored' }, { images })).to.equal('none');
    expect(faultOf({ overrides: { image: 'evil' } }, {})).to.equal('none');
  });

  it("can forbid users' own templates", () => {
    expect(faultOf({ template: templateOf('host') }, { inlineTemplates: 'nobody' })).to.equal(
      'template',
    );
    expect(faultOf({ templateName: 'stored' }, { inlineTemplates: 'nobody' })).to.equal('none');
    expect(faultOf({ overrides: { image: 'x' } }, { inlineTemplates: 'nobody' })).to.equal('none');
  });
});
