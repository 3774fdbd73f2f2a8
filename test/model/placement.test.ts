import { expect } from 'chai';
import { grantedFieldIn } from '../../src/model/templates/placement.ts';
import { renderDefinition } from '../../src/model/pools/render-definition.ts';
import { renderPool, SourceFault } from '../../src/model/pools/render-pool.ts';
import { SandboxTemplateSchema, type TemplateSpec } from '../../src/model/templates/template.ts';
import { updateRevisionOf } from '../../src/model/pools/update-revision.ts';

const SPEC = SandboxTemplateSchema.shape.spec;
const BARE = { containers: [{ name: 'main', image: 'busybox:1' }] };
const PLACED = {
  runtimeClassName: 'gvisor',
  nodeSelector: { 'sandpool.dev/sandboxes': 'yes', zone: '' },
  tolerations: [
    { key: 'dedicated', operator: 'Equal', value: 'sandboxes', effect: 'NoSchedule' },
    { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 },
  ],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [
          { matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] },
        ],
      },
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 100,
          preference: { matchExpressions: [{ key: 'cores', operator: 'Gt', values: ['8'] }] },
        },
      ],
    },
  },
  priorityClassName: 'sandboxes.low',
  podLabels: { 'example.com/cost-center': '12', app: '' },
  podAnnotations: { 'example.com/owner': 'Ann, of "blue"' },
  hostUsers: false,
};

describe("the placement of a template's Pods", () => {
  const faultOf = (fields: object): string => {
    const { error } = SPEC.safeParse({ ...BARE, ...fields });
    return error?.issues[0]?.path.join('.') ?? 'none';
  };
  const affinityOf = (requirement: object): object => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [requirement] }],
        },
      },
    },
  });
  const REQUIREMENT = [
    'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution',
    'nodeSelectorTerms.0.matchExpressions.0',
  ].join('.');
  const labels = (count: number): Record<string, string> =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`l${index}`, 'v']));

  for (const [what, fields, path] of [
    [
      'a label of Kubernetes',
      { podLabels: { 'a.kubernetes.io/b': 'x' } },
      'podLabels.a.kubernetes.io/b',
    ],
    [
      'a label of Sandpool',
      { podLabels: { 'sandpool.dev/pool-uid': 'x' } },
      'podLabels.sandpool.dev/pool-uid',
    ],
    [
      'an annotation of Karpenter',
      { podAnnotations: { 'karpenter.sh/x': '' } },
      'podAnnotations.karpenter.sh/x',
    ],
    ['a label that is none', { podLabels: { 'Not one!': 'x' } }, 'podLabels.Not one!'],
    ['a value that is none', { podLabels: { app: 'a b' } }, 'podLabels.app'],
    ['too many labels', { podLabels: labels(33) }, 'podLabels'],
    ['a long annotation', { podAnnotations: { a: 'x'.repeat(4_097) } }, 'podAnnotations.a'],
  ] as const)
    it(`refuses ${what} on Pods`, () => {
      expect(faultOf(fields)).to.equal(path);
    });

  it('is in the definition as in the template', () => {
    expect(renderDefinition(SPEC.parse({ ...BARE, ...PLACED })).placement).to.deep.equal(PLACED);
  });

  it('does not change a definition without it', () => {
    const definition = renderDefinition(SPEC.parse(BARE));
    expect(definition).to.not.have.property('placement');
    expect(updateRevisionOf(definition)).to.equal('5b845a2447259541');
  });

  for (const [field, fields] of [
    ['runtimeClassName', { runtimeClassName: '' }],
    ['runtimeClassName', { runtimeClassName: 'gVisor' }],
    ['runtimeClassName', { runtimeClassName: 'a'.repeat(254) }],
    ['priorityClassName', { priorityClassName: 'a..b' }],
    ['nodeSelector.-a', { nodeSelector: { '-a': 'b' } }],
    ['nodeSelector.a/b/c', { nodeSelector: { 'a/b/c': 'b' } }],
    [`nodeSelector.${'a'.repeat(64)}`, { nodeSelector: { ['a'.repeat(64)]: 'b' } }],
    [`nodeSelector.${'a'.repeat(254)}/b`, { nodeSelector: { [`${'a'.repeat(254)}/b`]: 'b' } }],
    ['nodeSelector.a', { nodeSelector: { a: 'b'.repeat(64) } }],
    ['nodeSelector', { nodeSelector: labels(33) }],
    ['tolerations', { tolerations: Array.from({ length: 33 }, () => ({ operator: 'Exists' })) }],
    ['tolerations.0.operator', { tolerations: [{ effect: 'NoSchedule' }] }],
    ['tolerations.0.value', { tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }] }],
    ['tolerations.0.effect', { tolerations: [{ key: 'a', tolerationSeconds: 5 }] }],
    ['tolerations.0.effect', { tolerations: [{ key: 'a', effect: 'Never' }] }],
    [
      'tolerations.0.tolerationSeconds',
      { tolerations: [{ key: 'a', effect: 'NoExecute', tolerationSeconds: -1 }] },
    ],
    ['affinity.nodeAffinity', { affinity: {} }],
    ['affinity', { affinity: { nodeAffinity: {}, podAffinity: {} } }],
    [`${REQUIREMENT}.values`, affinityOf({ key: 'a', operator: 'In' })],
    [`${REQUIREMENT}.values`, affinityOf({ key: 'a', operator: 'Exists', values: ['b'] })],
    [`${REQUIREMENT}.values`, affinityOf({ key: 'a', operator: 'Gt', values: ['b'] })],
    [
      `${REQUIREMENT}.values`,
      affinityOf({ key: 'a', operator: 'In', values: Array(65).fill('b') }),
    ],
    [`${REQUIREMENT}.key`, affinityOf({ key: '', operator: 'Exists' })],
    ['hostUsers', { hostUsers: true }],
  ] as const) {
    it(`is refused by its field: ${JSON.stringify(fields).slice(0, 60)}`, () => {
      expect(faultOf(fields)).to.equal(field);
    });
  }

  for (const [field, fields] of [
    ['extendedResources.gpu', { extendedResources: { gpu: 1 } }],
    [
      'extendedResources.pods.kubernetes.io/x',
      { extendedResources: { 'pods.kubernetes.io/x': 1 } },
    ],
    ['extendedResources.kubernetes.io/x', { extendedResources: { 'kubernetes.io/x': 1 } }],
    ['extendedResources.nvidia.com/gpu', { extendedResources: { 'nvidia.com/gpu': 0 } }],
    ['extendedResources.nvidia.com/gpu', { extendedResources: { 'nvidia.com/gpu': 1.5 } }],
    ['extendedResources.nvidia.com/gpu', { extendedResources: { 'nvidia.com/gpu': 1_000_001 } }],
    [
      'extendedResources',
      {
        extendedResources: Object.fromEntries(
          Array.from({ length: 17 }, (_, n) => [`a.b/${n}`, 1]),
        ),
      },
    ],
    ['ephemeralStorage', { ephemeralStorage: '1Ki' }],
    ['ephemeralStorage', { ephemeralStorage: '2Pi' }],
    ['ephemeralStorage', { ephemeralStorage: 'much' }],
    ['none', { extendedResources: { 'nvidia.com/gpu': 1_000_000 }, ephemeralStorage: '1Mi' }],
  ] as const) {
    it(`refuses devices and disk by their field: ${JSON.stringify(fields).slice(0, 60)}`, () => {
      const found = faultOf({ containers: [{ ...BARE.containers[0], ...fields }] });
      expect(found).to.equal(field === 'none' ? field : `containers.0.${field}`);
    });
  }

  it('can be as large as its bounds', () => {
    expect(
      faultOf({
        runtimeClassName: 'a'.repeat(253),
        nodeSelector: labels(32),
        tolerations: Array.from({ length: 32 }, () => ({ operator: 'Exists' })),
      }),
    ).to.equal('none');
    expect(
      faultOf({ nodeSelector: { [`${'a'.repeat(253)}/${'b'.repeat(63)}`]: 'c'.repeat(63) } }),
    ).to.equal('none');
  });
});

describe('an inline template', () => {
  const lookups = { template: () => undefined, instanceType: () => undefined };
  const faultOf = (fields: object): string => {
    const template: TemplateSpec = SPEC.parse({ ...BARE, ...fields });
    try {
      renderPool({ template }, lookups);
    } catch (error) {
      if (error instanceof SourceFault) return error.message;
      throw error;
    }
    return 'none';
  };

  for (const [field, value] of Object.entries(PLACED)) {
    it(`cannot set ${field}`, () => {
      expect(faultOf({ [field]: value })).to.equal(
        `template.${field}: ${field} is only allowed in templates that an admin created`,
      );
    });
  }

  it('cannot request devices or disk', () => {
    for (const fields of [
      { extendedResources: { 'nvidia.com/gpu': 1 } },
      { ephemeralStorage: '1Gi' },
    ]) {
      const [name] = Object.keys(fields);
      expect(
        faultOf({ containers: [...BARE.containers, { name: 'b', image: 'x', ...fields }] }),
      ).to.equal(
        `template.containers[1].${name}: ${name} is only allowed in templates that an admin created`,
      );
    }
  });

  it("cannot use the host's network", () => {
    expect(faultOf({ network: 'host' })).to.equal(
      'template.network: host is only allowed in templates that an admin created',
    );
    expect(faultOf({ network: 'none' })).to.equal('none');
    expect(grantedFieldIn({})).to.equal(undefined);
  });
});
