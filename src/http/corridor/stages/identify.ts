import type { IncomingMessage } from 'node:http';
import { consoleSessionRequired } from '../../../model/approvals/approval-refusals.ts';
import type { ConsoleSession } from '../../../model/console-session.ts';
import { adminRequired } from '../../../model/refusals.ts';
import type { Caller } from '../../../model/tenant.ts';
import type { Admission } from '../../limits/admission.ts';
import { refuseKeyBesideSession, type Clients } from '../../limits/clients.ts';
import { hasSessionCookie } from '../../limits/request-head.ts';
import type { Context } from '../../reply/context.ts';
import type { Route } from '../route.ts';
import type { Stage } from './exchange.ts';

interface IdentifyDeps extends AskingDeps {
  readonly admission: Pick<Admission, 'admit'>;
}

/**
 * Identifies the caller, checks access and rate, and waits for the tenant's turn on the event loop.
 */
export const identify =
  (deps: IdentifyDeps): Stage =>
  async (exchange, next) => {
    const { row, context } = exchange;
    const asking = whoAsks(row, deps, context);
    const { caller, session } = asking instanceof Promise ? await asking : asking;
    exchange.caller = caller;
    exchange.session = session;
    const turn = caller && deps.admission.admit(caller, context.req);
    if (turn) await turn;
    await next();
  };

/** Refuses a write that did not come from the console's own pages. */
export type SessionFinder = (
  request: IncomingMessage,
) => ConsoleSession | undefined | Promise<ConsoleSession | undefined>;

interface Asking {
  readonly caller: Caller | undefined;
  readonly session: ConsoleSession | undefined;
}

interface AskingDeps {
  readonly clients: Clients;
  readonly sessionOf?: SessionFinder;
}

const NOBODY: Asking = { caller: undefined, session: undefined };

/** Synchronous if this replica knows the key. */
const whoAsks = (row: Route, deps: AskingDeps, context: Context): Asking | Promise<Asking> => {
  if (deps.sessionOf) refuseKeyBesideSession(context.req);
  if (row.sessions) return fromConsole(row, deps, context);
  return row.access === 'open' ? NOBODY : byKey(row, deps.clients, context);
};

/** A valid key, or the cookie of an ended session, gets CONSOLE_SESSION_REQUIRED. */
const fromConsole = async (
  row: Route,
  { clients, sessionOf }: AskingDeps,
  context: Context,
): Promise<Asking> => {
  const session = await sessionOf?.(context.req);
  if (session) {
    context.state.session = session;
    return { caller: undefined, session };
  }
  if (row.sessions === 'also') return await byKey(row, clients, context);
  if (!hasSessionCookie(context.req)) await byKey(row, clients, context);
  throw consoleSessionRequired();
};

/** The session may end while the body arrives. */
export const stillAsks = async (
  { sessionId }: ConsoleSession,
  { sessionOf }: Pick<AskingDeps, 'sessionOf'>,
  { req }: Context,
): Promise<void> => {
  if ((await sessionOf?.(req))?.sessionId !== sessionId) throw consoleSessionRequired();
};

const byKey = (row: Route, clients: Clients, context: Context): Asking | Promise<Asking> => {
  const caller = clients.authenticate(context.req);
  const asking = (known: Caller): Asking => ({
    caller: admitted(row, known, { context, clients }),
    session: undefined,
  });
  return caller instanceof Promise ? caller.then(asking) : asking(caller);
};

const admitted = (
  row: Route,
  caller: Caller,
  { context, clients }: { readonly context: Context; readonly clients: Clients },
): Caller => {
  context.state.caller = caller;
  const endsAt = clients.keyEndOf(caller);
  if (endsAt !== undefined)
    context.set(
      'Warning',
      `299 - "this API key expires at ${new Date(endsAt).toISOString()}; create another key ` +
        'in time"',
    );
  if (row.access === 'admin' && caller.role !== 'admin') throw adminRequired();
  return caller;
};
