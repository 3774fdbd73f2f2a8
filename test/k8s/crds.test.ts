import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { crdFiles } from '../../script/crds.ts';
import { structuralOf } from '../../script/structural-schema.ts';

describe('the manifests of the custom resources', () => {
  it('have the bounds of the HTTP API', () => {
    const { spec } = parse(crdFiles().get('deploy/helm/sandpool/crds/sandboxpools.yaml') ?? '').spec
      .versions[0].schema.openAPIV3Schema.properties;

    expect(spec.properties.overrides.properties)
      .to.include.keys('image', 'volumes')
      .and.not.include.keys('imagePullSecret');
    expect(spec.properties.replicas).to.include({
      type: 'integer',
      minimum: 0,
      maximum: 10_000,
      default: 1,
    });
    expect(spec.properties.labels).to.deep.include({
      maxProperties: 64,
      additionalProperties: { type: 'string', pattern: String.raw`^[^\x00]*$`, maxLength: 1_024 },
    });
  });

  it('lose no bound without a word', () => {
    expect(() => structuralOf(z.object({ a: z.number().multipleOf(2) }))).to.throw(
      '.a: multipleOf has no place',
    );
    expect(() => structuralOf(z.union([z.string(), z.boolean()]))).to.throw('type has no place');
  });
});
