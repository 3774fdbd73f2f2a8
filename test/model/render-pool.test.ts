import { expect } from 'chai';
import type { InstanceType } from '../../src/model/templates/instance-type.ts';
import { mergedSource, sourceHashOf, type PoolSource } from '../../src/model/pools/pool-source.ts';
import { renderPool, SourceFault } from '../../src/model/pools/render-pool.ts';
import { SandboxTemplateSchema, type TemplateSpec } from '../../src/model/templates/template.ts';

const WEB: TemplateSpec = SandboxTemplateSchema.shape.spec.parse({
  containers: [
    {
      name: 'main',
      image: 'shell:1',
      command: ['run'],
      resources: { requests: { cpu: '100m' }, limits: { cpu: '500m', memory: '128Mi' } },
      ports: [{ name: 'http', containerPort: 80 }],
    },
    { name: 'side', image: 'side:1', resources: { limits: { cpu: '250m', memory: '64Mi' } } },
  ],
  endpoints: [{ name: 'web', port: 'http' }],
  idleTimeout: '30m',
  startupTimeout: '10s',
});
const LARGE: InstanceType = {
  name: 'large',
  showName: 'Large',
  description: '',
  maxMultiplier: 4,
  extensions: {},
  baseResources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '2Gi' } },
};
const lookups = {
  template: (name: string) =>
    name === 'web'
      ? {
          name,
          revision: '9',
          version: '3',
          createdAt: 1,
          document: {
            apiVersion: 'sandpool.dev/v1alpha1' as const,
            kind: 'SandboxTemplate' as const,
            metadata: { name },
            spec: WEB,
          },
        }
      : undefined,
  instanceType: (name: string) => (name === 'large' ? LARGE : undefined),
};

describe("the definition of a pool's instances", () => {
  const rendered = (source: PoolSource) => renderPool(source, lookups);
  const first = (source: PoolSource) => rendered(source).definition.containers[0]!;
  const faultOf = (source: PoolSource): string => {
    try {
      rendered(source);
    } catch (error) {
      if (error instanceof SourceFault) return `${error.field}: ${error.problem}`;
      throw error;
    }
    return 'none';
  };

  it('comes from the template, with its version', () => {
    const { definition, templateVersion } = rendered({ templateName: 'web' });
    expect(templateVersion).to.equal('3');
    expect(definition).to.include({
      cpu: '750m',
      memory: '192Mi',
      startupTimeoutMs: 10_000,
      idleTimeoutMs: 1_800_000,
    });
    expect(definition.endpoints).to.deep.equal({ web: { port: 80, scheme: 'http' } });
    expect(first({ templateName: 'web' })).to.deep.include({
      image: 'shell:1',
      cpuCores: 0.5,
      memoryBytes: 128 * 2 ** 20,
      requests: { cpuCores: 0.1, memoryBytes: 128 * 2 ** 20 },
    });
  });

  it('comes from an inline template in the same way, without a version', () => {
    const inline = rendered({ template: WEB });
    expect(inline.definition).to.deep.equal(rendered({ templateName: 'web' }).definition);
    expect(inline.updateRevision).to.equal(rendered({ templateName: 'web' }).updateRevision);
    expect(inline).to.not.have.property('templateVersion');
  });

  it('comes from an image only, with the requested size', () => {
    const { definition } = rendered({
      overrides: { image: 'tool:7' },
      cpu: '250m',
      memory: '32Mi',
    });
    expect(definition.containers).to.have.length(1);
    expect(definition.containers[0]).to.deep.include({
      name: 'main',
      image: 'tool:7',
      cpuCores: 0.25,
      memoryBytes: 32 * 2 ** 20,
    });
    expect(definition).to.include({ cpu: '250m', memory: '32Mi', network: 'none' });
  });

  it('sizes the first container, with the most specific setting per resource', () => {
    const sizeOf = (source: PoolSource) => {
      const { cpuCores, memoryBytes, requests } = first({ templateName: 'web', ...source });
      return [
        cpuCores,
        memoryBytes / 2 ** 20,
        requests?.cpuCores,
        requests && requests.memoryBytes / 2 ** 20,
      ];
    };
    expect(sizeOf({ instanceType: 'large' })).to.deep.equal([2, 2_048, 1, 1_024]);
    expect(sizeOf({ instanceType: 'large', multiplier: 2.5 })).to.deep.equal([
      5, 5_120, 2.5, 2_560,
    ]);
    expect(
      sizeOf({ instanceType: 'large', inlineResources: { limits: { cpu: '3' } } }),
    ).to.deep.equal([3, 2_048, 3, 1_024]);
    expect(
      sizeOf({
        instanceType: 'large',
        inlineResources: { requests: { cpu: '3' } },
        memory: '96Mi',
      }),
    ).to.deep.equal([3, 96, undefined, undefined]);
    // A request alone lowers no limit, and raises one that would be below it.
    expect(sizeOf({ inlineResources: { requests: { cpu: '250m' } } })).to.deep.equal([
      0.5, 128, 0.25, 128,
    ]);
    expect(
      sizeOf({
        instanceType: 'large',
        inlineResources: { requests: { cpu: '500m', memory: '64Mi' } },
      }),
    ).to.deep.equal([2, 2_048, 0.5, 64]);
    expect(sizeOf({ inlineResources: { requests: { cpu: '1' } } })).to.deep.equal([
      1,
      128,
      undefined,
      undefined,
    ]);
    expect(
      sizeOf({ cpu: '1', memory: '1Gi', inlineResources: { limits: { cpu: '9', memory: '9Gi' } } }),
    ).to.deep.equal([1, 1_024, undefined, undefined]);
    expect(rendered({ templateName: 'web', cpu: '2' }).definition.containers[1]).to.deep.equal(
      rendered({ templateName: 'web' }).definition.containers[1],
    );
  });

  it("uses the image of the overrides, unless the policy selects the template's", () => {
    expect(first({ templateName: 'web', overrides: { image: 'other:2' } })).to.include({
      image: 'other:2',
      name: 'main',
    });
    expect(
      first({
        templateName: 'web',
        overrides: { image: 'other:2', podCreationImagePolicy: 'EnvOverrideImage' },
      }).image,
    ).to.equal('other:2');
    expect(
      first({
        templateName: 'web',
        overrides: { image: 'other:2', podCreationImagePolicy: 'PoolDefaultImage' },
      }).image,
    ).to.equal('shell:1');
  });

  it('takes timeouts, volumes, passwords, verbosity and unpublished endpoints from the overrides', () => {
    const volumes = [{ claimName: 'data', mountPath: '/data' }];
    const { definition } = rendered({
      templateName: 'web',
      overrides: {
        defaultIdleTimeout: '0',
        defaultStartupTimeout: '5s',
        volumes,
        imagePullSecretConfigured: true,
        gateway: { enabled: false },
        envd: { verbose: true },
      },
    });
    expect(definition).to.deep.include({
      idleTimeoutMs: 0,
      startupTimeoutMs: 5_000,
      volumes,
      imagePullSecret: true,
      unpublished: true,
    });
    expect(definition.containers.map(({ env }) => env)).to.deep.equal([
      { SANDPOOL_LOG_LEVEL: 'debug' },
      { SANDPOOL_LOG_LEVEL: 'debug' },
    ]);
  });

  it('has a new revision for every difference, and the same one for settings without an effect', () => {
    const { updateRevision } = rendered({ templateName: 'web' });
    expect(
      rendered({
        templateName: 'web',
        overrides: { image: 'shell:1', gateway: { enabled: true }, volumes: [] },
      }).updateRevision,
    ).to.equal(updateRevision);
    for (const more of [
      { cpu: '1' },
      { overrides: { image: 'x' } },
      { overrides: { gateway: { enabled: false } } },
      { overrides: { defaultIdleTimeout: '1m' } },
    ]) {
      expect(
        rendered({ templateName: 'web', ...more }).updateRevision,
        JSON.stringify(more),
      ).to.not.equal(updateRevision);
    }
  });

  for (const [source, fault] of [
    [{}, 'templateName: is required if there is neither template nor overrides.image'],
    [
      { cpu: '1', memory: '1Gi' },
      'templateName: is required if there is neither template nor overrides.image',
    ],
    [
      { overrides: { image: 'x', podCreationImagePolicy: 'PoolDefaultImage' } },
      'templateName: is required if there is neither template nor overrides.image',
    ],
    [{ templateName: 'none' }, 'templateName: there is no usable template none'],
    [{ templateName: 'web', multiplier: 2 }, 'multiplier: needs an instanceType'],
    [{ templateName: 'web', instanceType: 'huge' }, 'instanceType: there is no instance type huge'],
    [
      { templateName: 'web', instanceType: 'large', multiplier: 4.5 },
      'multiplier: must be at most 4, the maxMultiplier of large',
    ],
    [
      { templateName: 'web', instanceType: 'large', multiplier: 0.001 },
      'multiplier: containers[0].resources.requests.cpu: must be a cpu quantity from 10m to 256',
    ],
    [
      { template: { containers: [] } },
      'template.containers: Too small: expected array to have >=1 items',
    ],
    [
      { template: { ...WEB, endpoints: [{ name: 'web', port: 'nowhere' }] } },
      'template.endpoints[0].port: must be a port from 1 to 65535, or the name of a port of the container',
    ],
  ] as const satisfies readonly (readonly [PoolSource, string])[]) {
    it(`is invalid: ${JSON.stringify(source).slice(0, 70)}`, () => {
      expect(faultOf(source)).to.equal(fault);
    });
  }
});

describe("a patch of a pool's source", () => {
  it('keeps fields that it does not name, even within the overrides', () => {
    const before = {
      templateName: 'web',
      cpu: '1',
      overrides: { image: 'x', envd: { verbose: true } },
    };
    expect(mergedSource(before, {})).to.deep.equal(before);
    expect(mergedSource(before, { cpu: '2', overrides: { image: 'y' } })).to.deep.equal({
      templateName: 'web',
      cpu: '2',
      overrides: { image: 'y', envd: { verbose: true } },
    });
  });

  it('replaces a named template by an inline one, and the reverse', () => {
    const inline = mergedSource({ templateName: 'web', cpu: '1' }, { template: WEB });
    expect(inline).to.deep.equal({ template: WEB, cpu: '1' });
    expect(mergedSource(inline, { templateName: 'web' })).to.deep.equal({
      templateName: 'web',
      cpu: '1',
    });
  });

  it('has the same hash in any order of fields', () => {
    expect(sourceHashOf({ cpu: '1', templateName: 'web' })).to.equal(
      sourceHashOf({ templateName: 'web', cpu: '1' }),
    );
    expect(sourceHashOf({ templateName: 'web' })).to.not.equal(
      sourceHashOf({ templateName: 'web', cpu: '1' }),
    );
  });
});
