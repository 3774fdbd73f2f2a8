import type { Tokens } from './tokens.ts';
import type { Quotas } from './coordination/quotas.ts';
import type { Claims } from './coordination/claims.ts';
import type { Leases } from './coordination/leases.ts';
import type { Requests } from './coordination/requests.ts';
import type { Activity } from './coordination/activity.ts';
import type { RateLimits } from './coordination/rate-limits.ts';
import type { EventLog } from './coordination/event-log.ts';
import type { Revocations, DemandSignals } from './coordination/signals.ts';
import type { ClusterStarts } from './coordination/cluster-starts.ts';
import type { ConsoleSessions } from './coordination/console-sessions.ts';
import type { Inquiries } from './coordination/inquiries.ts';

/** `problems`: failures for which POSTs are refused. `warnings`: guarantees that it can't give. */
export interface CoordinationHealth {
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Short-lived state that replicas share. Every call is one atomic step, and ends in about a second.
 * It rejects with `unavailable` when the store is unreachable, and never guesses.
 */
export interface Coordination
  extends
    Quotas,
    Claims,
    Leases,
    Requests,
    Tokens,
    Activity,
    RateLimits,
    EventLog,
    Revocations,
    DemandSignals,
    Inquiries,
    ConsoleSessions,
    ClusterStarts {
  describe(): CoordinationHealth;
}
