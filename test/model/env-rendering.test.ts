import { expect } from 'chai';
import type { EnvOverrides, MemberConfig } from '../../src/model/envs/env.ts';
import { withSpec, matchesSpec, memberPoolPart } from '../../src/model/envs/env-rendering.ts';
import type { InstanceType } from '../../src/model/templates/instance-type.ts';
import { mergePatch } from '../../src/actors/env/commands/merge-patch.ts';
import { CLOSED_BREAKER, type PoolRecord } from '../../src/model/pools/pool.ts';
import { renderPool } from '../../src/model/pools/render-pool.ts';
import {
  SandboxTemplateSchema,
  type InstanceDefinition,
  type TemplateRecord,
} from '../../src/model/templates/template.ts';

const specOf = (more: object) =>
  SandboxTemplateSchema.parse({
    apiVersion: 'sandpool.dev/v1alpha1',
    kind: 'SandboxTemplate',
    metadata: { name: 't' },
    spec: {
      containers: [
        { name: 'main', image: 'shell:1', resources: { limits: { cpu: '1', memory: '128Mi' } } },
      ],
      endpoints: [{ name: 'web', port: 80 }],
      idleTimeout: '30m',
      startupTimeout: '10s',
      ...more,
    },
  });
const TEMPLATE: TemplateRecord = {
  name: 't',
  revision: '9',
  version: '3',
  createdAt: 1,
  document: specOf({ defaults: { instanceType: 'small', multiplier: 2 } }),
  earlier: [{ version: '2', spec: JSON.stringify(specOf({ idleTimeout: '1m' }).spec) }],
};
const aType = (name: string, cpu: string, memory: string): InstanceType => ({
  name,
  showName: name,
  description: '',
  maxMultiplier: 4,
  extensions: {},
  baseResources: { requests: {}, limits: { cpu, memory } },
});
const TYPES = [aType('small', '500m', '256Mi'), aType('large', '2', '2Gi')];
const lookups = {
  template: (name: string) => (name === 't' ? TEMPLATE : undefined),
  instanceType: (name: string) => TYPES.find((type) => type.name === name),
};

describe('the definition of an env member', () => {
  const partOf = (overrides: EnvOverrides = {}, config: MemberConfig = {}, version?: string) =>
    memberPoolPart({ templateRef: { name: 't', version }, overrides }, { config });
  const definitionOf = (
    overrides?: EnvOverrides,
    config?: MemberConfig,
    version?: string,
  ): InstanceDefinition =>
    renderPool(partOf(overrides, config, version).source, lookups).definition;
  const plain = definitionOf();

  for (const [name, overrides, effect] of [
    [
      'image',
      { image: 'other:2' },
      (made: InstanceDefinition) => made.containers[0]?.image === 'other:2',
    ],
    [
      'podCreationImagePolicy PoolDefaultImage',
      { image: 'other:2', podCreationImagePolicy: 'PoolDefaultImage' },
      (made: InstanceDefinition) => made.containers[0]?.image === 'shell:1',
    ],
    [
      'podCreationImagePolicy EnvOverrideImage',
      { image: 'other:2', podCreationImagePolicy: 'EnvOverrideImage' },
      (made: InstanceDefinition) => made.containers[0]?.image === 'other:2',
    ],
    [
      'defaultStartupTimeout',
      { defaultStartupTimeout: '5s' },
      (made: InstanceDefinition) => made.startupTimeoutMs === 5_000,
    ],
    [
      'defaultIdleTimeout',
      { defaultIdleTimeout: '0' },
      (made: InstanceDefinition) => made.idleTimeoutMs === 0,
    ],
    [
      'imagePullSecret',
      { imagePullSecretConfigured: true },
      (made: InstanceDefinition) => made.imagePullSecret === true,
    ],
    [
      'gateway',
      { gateway: { enabled: false } },
      (made: InstanceDefinition) => made.unpublished === true,
    ],
    [
      'envd',
      { envd: { verbose: true } },
      (made: InstanceDefinition) => made.containers[0]?.env['SANDPOOL_LOG_LEVEL'] === 'debug',
    ],
    [
      'volumes',
      { volumes: [{ claimName: 'data', mountPath: '/data' }] },
      (made: InstanceDefinition) => made.volumes?.[0]?.claimName === 'data',
    ],
  ] as const satisfies readonly (readonly [
    string,
    EnvOverrides,
    (made: InstanceDefinition) => boolean,
  ])[]) {
    it(`applies the override ${name}`, () => {
      expect(effect(definitionOf(overrides)), JSON.stringify(overrides)).to.equal(true);
    });
  }

  it("takes the updateStrategy of the overrides, field by field behind the member's own", () => {
    expect(partOf().updateStrategy).to.deep.equal({ autoUpdate: true, maxUnavailable: '25%' });
    expect(
      partOf(
        { updateStrategy: { autoUpdate: false, maxUnavailable: '2' } },
        { updateStrategy: { maxUnavailable: '50%' } },
      ).updateStrategy,
    ).to.deep.equal({ autoUpdate: false, maxUnavailable: '50%' });
    expect(definitionOf({ updateStrategy: { autoUpdate: false } })).to.deep.equal(plain);
  });

  it("has the size of the template's type, the member's type or inlineResources, the last one set", () => {
    expect([plain.cpu, plain.memory]).to.deep.equal(['1', '512Mi']);
    expect(definitionOf({}, { multiplier: 1 })).to.include({ cpu: '500m', memory: '256Mi' });
    expect(definitionOf({}, { instanceType: 'large' })).to.include({ cpu: '2', memory: '2Gi' });
    expect(
      definitionOf({}, { instanceType: 'large', inlineResources: { limits: { memory: '3Gi' } } }),
    ).to.include({ cpu: '2', memory: '3Gi' });
  });

  it('uses the template version of the env', () => {
    expect(definitionOf({}, {}, '2').idleTimeoutMs).to.equal(60_000);
    expect(renderPool(partOf({}, {}, '2').source, lookups).templateVersion).to.equal('2');
    expect(() => definitionOf({}, {}, '1')).to.throw(
      'templateVersion: version 1 of template t is no longer stored',
    );
  });

  it('is rendered again only if its source differs', () => {
    const part = partOf();
    const pool: PoolRecord = {
      uid: 'u',
      revision: '1',
      name: 'm',
      owner: { namespace: 'n', team: 'n', user: 'u' },
      createdAt: 1,
      replicas: 1,
      ...part,
      ...renderPool(part.source, lookups),
      breaker: CLOSED_BREAKER,
      deleting: false,
    };

    expect(matchesSpec(pool, part)).to.equal(true);
    expect(withSpec(pool, partOf({}, { labels: { a: 'b' } }))).to.deep.equal({
      ...pool,
      labels: { a: 'b' },
    });
    expect(withSpec(pool, partOf({ image: 'x' }))).to.deep.include({
      unrendered: true,
      source: { templateName: 't', overrides: { image: 'x' } },
    });
  });
});

describe('a merge patch', () => {
  it('removes fields by null, merges objects, and replaces the rest', () => {
    expect(
      mergePatch({ a: 1, b: { c: 2, d: 3 }, e: [1, 2] }, { a: null, b: { c: null, f: 4 }, e: [3] }),
    ).to.deep.equal({ b: { d: 3, f: 4 }, e: [3] });
    expect(mergePatch({ a: 'text' }, { a: { b: null, c: 1 } })).to.deep.equal({ a: { c: 1 } });
  });
});
