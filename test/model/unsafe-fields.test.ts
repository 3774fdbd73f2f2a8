import { expect } from 'chai';
import { unsafeFieldIn } from '../../src/model/templates/unsafe-fields.ts';

describe('fields refused for safety', () => {
  const found = (value: unknown): string | undefined => unsafeFieldIn(value)?.path.join('.');

  const container = (part: object) => ({
    spec: { containers: [{ name: 'main', image: 'host', ...part }] },
  });

  const UNSAFE: readonly (readonly [string, unknown])[] = [
    [
      'spec.containers.0.securityContext.privileged',
      container({ securityContext: { privileged: true } }),
    ],
    [
      'spec.containers.0.securityContext.allowPrivilegeEscalation',
      container({ securityContext: { allowPrivilegeEscalation: true } }),
    ],
    [
      'spec.containers.0.securityContext.capabilities.add',
      container({ securityContext: { capabilities: { drop: ['ALL'], add: ['SYS_ADMIN'] } } }),
    ],
    [
      'spec.containers.0.securityContext.procMount',
      container({ securityContext: { procMount: 'Unmasked' } }),
    ],
    ['spec.containers.0.ports.0.hostPort', container({ ports: [{ hostPort: 80 }] })],
    [
      'spec.containers.0.volumeMounts.0.subPath',
      container({ volumeMounts: [{ mountPath: '/data', subPath: 'a/../../b' }] }),
    ],
    [
      'spec.containers.0.volumeMounts.0.mountPath',
      container({ volumeMounts: [{ mountPath: '..' }] }),
    ],
    ['spec.containers.0.workingDir', container({ workingDir: '/home/../etc' })],
    ['spec.volumes.0.hostPath', { spec: { volumes: [{ name: 'root', hostPath: { path: '/' } }] } }],
    ...['hostNetwork', 'hostPID', 'hostIPC', 'automountServiceAccountToken'].map(
      (name) => [`spec.${name}`, { spec: { [name]: true } }] as const,
    ),
    ...['serviceAccountName', 'serviceAccount'].map(
      (name) => [`spec.${name}`, { spec: { [name]: 'admin' } }] as const,
    ),
  ];

  for (const [path, document] of UNSAFE) {
    it(`include ${path}`, () => {
      expect(found(document)).to.equal(path);
      expect(unsafeFieldIn(document)?.problem).to.match(/^is refused for safety: /);
    });
  }

  it('exclude values of similar names, and fields without an effect', () => {
    expect(
      found(
        container({
          securityContext: { privileged: false, capabilities: { drop: ['ALL'], add: [] } },
          env: [{ name: 'hostPath', value: '..' }],
        }),
      ),
    ).to.equal(undefined);
    expect(found({ spec: { hostNetwork: false, hostPath: null, toString: 1 } })).to.equal(
      undefined,
    );
    expect(found(container({ workingDir: '/a..b/...', command: ['..'] }))).to.equal(undefined);
    for (const value of [undefined, null, 'privileged', 7, []])
      expect(found(value)).to.equal(undefined);
  });

  it('are found in bounded time and stack, at any depth of a value', () => {
    let deep: unknown = { privileged: true };
    for (let level = 0; level < 100_000; level += 1) deep = { deep };

    expect(found(deep)).to.equal(undefined);
  });
});
