import { basename } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { contentHash } from '../../src/lib/content-hash.ts';
import {
  DEFINITIONS_ANNOTATION,
  DEFINITIONS_VERSION,
  PLURALS,
} from '../../src/k8s/records/installed-definitions.ts';
import { crdFiles } from '../../script/crds.ts';
import { structuralOf } from '../../script/structural-schema.ts';

interface Node {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly additionalProperties?: Node;
}

const withoutProse = (texts: readonly unknown[]): unknown =>
  JSON.parse(
    JSON.stringify(texts, (name, value: unknown) =>
      ['description', 'message'].includes(name) && typeof value === 'string' ? undefined : value,
    ),
  );

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

  it('describe every field, and have a short name', () => {
    const silent = (node: Node, path: string): readonly string[] => [
      ...Object.entries(node.properties ?? {}).flatMap(([name, field]) => [
        // the API server describes it, and takes no other description
        ...(field.description || (path === '' && name === 'metadata') ? [] : [`${path}.${name}`]),
        ...silent(field, `${path}.${name}`),
      ]),
      ...[node.items, node.additionalProperties].flatMap((inner) =>
        inner ? silent(inner, `${path}[]`) : [],
      ),
    ];
    for (const text of crdFiles().values()) {
      const { names, versions } = parse(text).spec;
      expect(silent(versions[0].schema.openAPIV3Schema, ''), names.kind).to.deep.equal([]);
      expect(names.shortNames, names.kind).to.have.length(1);
    }
    expect(crdFiles().size).to.equal(8);
  });

  it('have a version that increases with each change', () => {
    const texts = [...crdFiles().values()].map((text) => {
      const { metadata, spec } = parse(text);
      expect(metadata.annotations[DEFINITIONS_ANNOTATION]).to.equal(String(DEFINITIONS_VERSION));
      return spec;
    });
    expect([...crdFiles().keys()].map((path) => basename(path, '.yaml'))).to.have.members(PLURALS);

    // raise DEFINITIONS_VERSION, and note both here
    expect([DEFINITIONS_VERSION, contentHash(withoutProse(texts))]).to.deep.equal([
      1,
      '20bede04b92b610f21a71d7ad58cb611',
    ]);
  });

  it('drop no bound silently', () => {
    expect(() => structuralOf(z.object({ a: z.number().multipleOf(2) }))).to.throw(
      '.a: multipleOf has no place',
    );
    expect(() => structuralOf(z.union([z.string(), z.boolean()]))).to.throw('type has no place');
  });
});
