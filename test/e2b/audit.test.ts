import { expect } from 'chai';
import type { AuditEntry } from '../../src/contracts/audit.ts';
import { silentMetrics } from '../../src/contracts/metrics.ts';
import { instanceIdOf } from '../../src/e2b/sandbox-id.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { aCompatibleApi } from './a-compatible-api.ts';

describe('the audit of the compatible API', () => {
  it('names the sandbox and the pool of a claim, and no token', async () => {
    const noted: AuditEntry[] = [];
    const audit = { note: (entry: AuditEntry) => void noted.push(entry), count: () => {} };
    const api = await aCompatibleApi({
      audit,
      watchers: { log: quietLog, metrics: silentMetrics, audit },
    });
    try {
      const answer = await fetch(`${api.url}/v2/sandboxes`, {
        method: 'POST',
        headers: { 'X-API-KEY': api.keys.tenant, 'Content-Type': 'application/json' },
        body: JSON.stringify({ templateID: 'base' }),
      });
      const { sandboxID } = (await answer.json()) as { readonly sandboxID: string };

      expect(noted).to.have.lengthOf(1);
      expect(noted[0]?.operation).to.equal('claimSandbox');
      expect(noted[0]?.target).to.deep.equal({
        sandboxId: instanceIdOf(sandboxID),
        poolName: 'default',
      });
      expect(JSON.stringify(noted)).not.to.contain('sbt_');
    } finally {
      await api.stop();
    }
  });
});
