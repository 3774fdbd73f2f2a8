import { RecentAuditRing } from '../../src/services/audit/recent-audit-ring.ts';
import { recentAuditSuite } from '../contracts/recent-audit.ts';

recentAuditSuite('in memory', async () => ({
  recent: new RecentAuditRing(),
  close: async () => undefined,
}));
