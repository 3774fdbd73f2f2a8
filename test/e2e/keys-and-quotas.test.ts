import { keysAndQuotasSuite } from '../contracts/keys-and-quotas.ts';
import { onTheSharedDaemon } from '../support/harness/shared-daemon.ts';

describe('keys and quotas of the embedded daemon', function () {
  const daemon = onTheSharedDaemon();

  keysAndQuotasSuite('one daemon', () => ({
    ports: [daemon().run.port],
    adminKey: daemon().adminKey,
    templateName: 'default',
    namespaceOf: async (team) => team,
  }));
});
