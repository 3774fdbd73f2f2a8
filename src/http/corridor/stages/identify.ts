import { tenantKey } from '../../../model/tenant.ts';
import type { Clients } from '../../limits/clients.ts';
import type { RequestLimits } from '../request-limits.ts';
import { whoAsks, type SessionFinder } from '../who-asks.ts';
import type { Stage } from './exchange.ts';

interface IdentifyDeps {
  readonly clients: Clients;
  /** Absent: no person asks. */
  readonly sessionOf?: SessionFinder;
  readonly limits: Pick<RequestLimits, 'keyRates' | 'loopTurns'>;
}

/**
 * Finds the caller by key, link or session, and whether they may call the row. A caller waits for
 * the turn of their tenant on the event loop.
 */
export const identify =
  (deps: IdentifyDeps): Stage =>
  async (exchange, next) => {
    const { row, context } = exchange;
    const asking = whoAsks(row, deps, context);
    const { caller, session } = asking instanceof Promise ? await asking : asking;
    exchange.caller = caller;
    exchange.session = session;
    if (caller) {
      deps.limits.keyRates.count(caller, context.req);
      const mayBegin = deps.limits.loopTurns.take(tenantKey(caller), context.req);
      if (mayBegin) await mayBegin;
    }
    await next();
  };
