import type { Clients } from '../../limits/clients.ts';
import { whoAsks, type SessionFinder } from '../who-asks.ts';
import type { Stage } from './exchange.ts';

interface IdentifyDeps {
  readonly clients: Clients;
  /** Absent: no person asks. */
  readonly sessionOf?: SessionFinder;
}

/** Finds the caller by key, link or session, and whether they may call the row. */
export const identify =
  (deps: IdentifyDeps): Stage =>
  async (exchange, next) => {
    const asking = whoAsks(exchange.row, deps, exchange.context);
    const { caller, session } = asking instanceof Promise ? await asking : asking;
    exchange.caller = caller;
    exchange.session = session;
    await next();
  };
