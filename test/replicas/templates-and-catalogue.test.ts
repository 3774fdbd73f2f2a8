import {
  templatesAndCatalogueSuite,
  type DeploymentUnderTest,
} from '../contracts/templates-and-catalogue.ts';
import { aBoundClaim } from '../support/cluster/a-bound-claim.ts';
import type { HttpClient } from '../support/harness/http-client.ts';
import { PatientClient } from '../support/harness/patient-client.ts';
import { onSharedReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('templates and the catalogue on three replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedReplicas(controlPlane);
  let deployment: DeploymentUnderTest;

  before(async () => {
    const clientsOf = (key: string): readonly HttpClient[] =>
      replicas().list.map(({ port }) => new PatientClient(port, key));
    const tenants = clientsOf(await replicas().tenant('red', 'rita'));
    const [stranger] = clientsOf(await replicas().tenant('blue', 'bob'));
    const namespace = replicas().namespaceOf('red');
    deployment = {
      admins: clientsOf(replicas().adminKey),
      tenants,
      stranger: stranger!,
      image: 'registry.invalid/sandbox:1',
      volumes: [
        {
          claimName: 'data',
          displayName: 'The data',
          accessModes: ['ReadWriteOnce'],
          storageClass: 'by-hand',
          phase: 'Bound',
        },
      ],
      makeVolume: () => aBoundClaim(controlPlane(), { name: 'passing', namespace }),
      removeVolume: async () => {
        await controlPlane().kubectl('delete', 'pvc', 'passing', '-n', namespace, '--wait=false');
      },
    };
    for (const [name, phase] of [
      ['data', 'Bound'],
      ['waiting', 'Pending'],
    ] as const)
      await aBoundClaim(controlPlane(), { name, namespace, phase });
  });

  sampled(() => {
    templatesAndCatalogueSuite('three replicas', () => deployment);
  });
});
