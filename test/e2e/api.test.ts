import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { aTenant } from '../support/harness/on-a-daemon.ts';
import { line } from '../support/harness/line.ts';

/** Its namespace is its own name. */
const WITH_A_VOLUME = 'matrix';

describe('the whole API of the embedded daemon', function () {
  let daemon: DaemonUnderTest;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-volume-'));
    daemon = await DaemonUnderTest.start(line`--compatible-api-listen 127.0.0.1:0
      --default-pool-replicas 0 --trusted-proxies 127.0.0.1 --instance-types-provider none
      --volumes-directories ${WITH_A_VOLUME}/of-${WITH_A_VOLUME}=${folder}`);
  });
  after(async () => {
    await daemon?.dispose();
    rmSync(folder, { recursive: true });
  });

  const service = (): RunningService => ({
    ports: [daemon.run.port],
    dataDirs: [daemon.dataDir],
    adminKey: daemon.adminKey,
    image: 'host',
    keyOf: async (team, user) => (await aTenant(daemon, team, user)).key ?? '',
    volumeOf: async (team) => {
      if (team !== WITH_A_VOLUME) throw new Error(`${team} has no volume`);
      return `of-${team}`;
    },
  });

  foreignIdsSuite('one daemon', service);
  imageNamesSuite('one daemon', service);
  errorTableSuite('one daemon', service);
  consoleSuite('one daemon', service);
  operationsInFullSuite('one daemon', service);
  autoscalingSuite('one daemon', service);
  entityTagsSuite('one daemon', service);
  lookingInsideSuite('one daemon', service);
  hostileServiceSuite('one daemon', service);
  commandLineSuite('one daemon', service);
  claimTermsSuite('one daemon', service);
  claimFilesSuite('one daemon', service);
});
