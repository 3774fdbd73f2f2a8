import { keysAndQuotasSuite } from '../contracts/keys-and-quotas.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';

describe('keys and quotas of the embedded daemon', function () {
  let daemon: DaemonUnderTest;
  before(async () => {
    daemon = await DaemonUnderTest.start(['--default-pool-replicas', '0']);
  });
  after(() => daemon.dispose());

  keysAndQuotasSuite('one daemon', () => ({
    ports: [daemon.run.port],
    adminKey: daemon.adminKey,
    templateName: 'default',
    namespaceOf: async (team) => team,
  }));
});
