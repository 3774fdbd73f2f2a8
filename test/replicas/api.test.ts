import { autoscalingSuite } from '../contracts/api/autoscaling.ts';
import { claimFilesSuite } from '../contracts/api/claim-files.ts';
import { claimTermsSuite } from '../contracts/api/claim-terms.ts';
import { entityTagsSuite } from '../contracts/api/entity-tags.ts';
import { commandLineSuite } from '../contracts/api/command-line.ts';
import { consoleSuite } from '../contracts/api/console.ts';
import { errorTableSuite } from '../contracts/api/error-table.ts';
import { foreignIdsSuite } from '../contracts/api/foreign-ids.ts';
import { hostileServiceSuite } from '../contracts/api/hostile-service.ts';
import { imageNamesSuite } from '../contracts/api/image-names.ts';
import { lookingInsideSuite } from '../contracts/api/looking-inside.ts';
import { operationsInFullSuite } from '../contracts/api/operations-in-full.ts';
import type { RunningService } from '../contracts/api/running-service.ts';
import { aBoundClaim } from '../support/cluster/a-bound-claim.ts';
import { onSharedCompatibleReplicas } from '../support/cluster/on-replicas.ts';
import { onTheControlPlane } from '../support/cluster/shared-cluster.ts';
import { sampled } from '../support/harness/sampled.ts';

describe('the whole API of three replicas', function () {
  const controlPlane = onTheControlPlane();
  const replicas = onSharedCompatibleReplicas(controlPlane);
  const service = (): RunningService => ({
    ports: replicas().list.map(({ port }) => port),
    dataDirs: replicas().list.map(({ dataDir }) => dataDir),
    adminKey: replicas().adminKey,
    image: 'registry.invalid/sandbox:1',
    keyOf: (team, user) => replicas().tenant(team, user),
    volumeOf: async (team) => {
      await aBoundClaim(controlPlane(), {
        name: `of-${team}`,
        namespace: replicas().namespaceOf(team),
      });
      return `of-${team}`;
    },
  });

  sampled(() => {
    foreignIdsSuite('three replicas', service);
    imageNamesSuite('three replicas', service);
    errorTableSuite('three replicas', service);
    consoleSuite('three replicas', service);
    operationsInFullSuite('three replicas', service);
    autoscalingSuite('three replicas', service);
    entityTagsSuite('three replicas', service);
    lookingInsideSuite('three replicas', service);
    hostileServiceSuite('three replicas', service);
    commandLineSuite('three replicas', service);
    claimTermsSuite('three replicas', service);
    claimFilesSuite('three replicas', service);
  });
});
