import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import type { AuditEntry, AuditSink } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';
import { containFaults } from '../../lib/fault-scope.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type {
  OpenTerminal,
  OpenTerminalRequest,
} from '../../operations/sandboxes/sandbox-operations.ts';
import type { Operations } from '../../operations/operations.ts';
import { refusalOf, statusOf } from '../router/error-table.ts';
import { requestIdFrom } from '../server/request-id.ts';
import { DEFAULT_FRAMES, FrameBudgets, type FrameBudgetTerms } from './frame-budget.ts';
import { badHandshake, draining, openingFailure, refuseUpgrade } from './refusals.ts';
import {
  chooseProtocol,
  readTerminalRequest,
  TERMINAL_PROTOCOL,
  type TerminalRules,
} from './request.ts';
import { MAX_MESSAGE_BYTES, SLOW_CLOSE_MS, TerminalSession } from './session.ts';

export interface TerminalDeps extends TerminalRules {
  readonly operations: Pick<Operations, 'openTerminal'>;
  readonly log: Log;
  readonly clock: Clock;
  /** Absent: nobody takes down which terminals are opened. */
  readonly audit?: AuditSink | undefined;
  /** Bounds what clients may send; absent: the defaults of the settings. */
  readonly frames?: FrameBudgetTerms;
}

export interface TerminalUpgrades {
  /**
   * For the server's `upgrade` event: opens a terminal, or answers why not and closes the socket.
   * Never throws.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /**
   * Ends every terminal with 1012 and refuses new ones; resolves when all are closed, in about 3 s
   * at most. May be repeated.
   */
  readonly stop: () => Promise<void>;
}

/** Upgrades that wait for their terminal at once; more are told to come back. */
const MAX_PENDING = 256;
const OPEN_DEADLINE_MS = 10_000;
const KEEP_ALIVE_MS = 20_000;

/** The WebSocket terminal: `GET /ws/clusters/{clusterID}/sandboxes/{sandboxId}/terminal`. */
export const terminalUpgrades = (deps: TerminalDeps): TerminalUpgrades => {
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    autoPong: false,
    closeTimeout: SLOW_CLOSE_MS,
    handleProtocols: chooseProtocol,
    // one frame of each connection in a turn of the loop, however many came at once
    allowSynchronousEvents: false,
  };
  const server = new WebSocketServer(options);
  const sessions = new Set<TerminalSession>();
  const pending = new Set<Duplex>();
  const requestIds = new WeakMap<IncomingMessage, string>();
  const budgets = new FrameBudgets(deps.frames ?? DEFAULT_FRAMES, () => deps.clock.now());
  let stopping = false;

  server.on('headers', (headers, request) =>
    headers.push(
      `X-Request-Id: ${requestIds.get(request) ?? requestIdFrom(request.headers['x-request-id'])}`,
    ),
  );
  server.on('wsClientError', (error, socket, request) =>
    refuse(request, socket, badHandshake(error.message)),
  );

  const refuse = (request: IncomingMessage, socket: Duplex, error: unknown): void => {
    const requestId = requestIds.get(request) ?? requestIdFrom(request.headers['x-request-id']);
    const refusal = refusalOf(error);
    const cause = error instanceof Refusal ? {} : { error };
    if (refusal)
      deps.log.info(
        { entity: 'terminal', requestId, errorCode: refusal.code, ...cause },
        'terminal refused',
      );
    else
      deps.log.error(
        { entity: 'terminal', requestId, error: String(error) },
        'terminal did not open',
      );
    refuseUpgrade(socket, error, { requestId, clock: deps.clock });
  };

  const note = (
    request: IncomingMessage,
    { sandboxId }: OpenTerminalRequest,
    outcome: Pick<AuditEntry, 'status' | 'caller' | 'errorCode'>,
  ): void => {
    deps.audit?.note({
      requestId: requestIds.get(request) ?? '',
      operation: 'openTerminal',
      params: { sandboxId: blankApiKeys(sandboxId.slice(0, 256)) },
      ...outcome,
    });
  };

  const serve = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const read = readTerminalRequest(request, deps);
    if ('refusal' in read) return refuse(request, socket, read.refusal);
    if (stopping || pending.size >= MAX_PENDING) return refuse(request, socket, draining());
    pending.add(socket);
    let opened: OpenTerminal;
    try {
      opened = await open(deps, read.ask);
    } catch (error) {
      const failure = openingFailure(error);
      const errorCode = refusalOf(failure)?.code ?? 'INTERNAL';
      note(request, read.ask, { status: statusOf(errorCode), errorCode });
      return refuse(request, socket, failure);
    } finally {
      pending.delete(socket);
    }
    note(request, read.ask, { status: 101, caller: opened.caller });
    if (stopping) {
      opened.close();
      return refuse(request, socket, draining());
    }
    join({ request, socket, head, ask: read.ask, opened });
  };

  const join = (way: Way): void => {
    let joined = false;
    if (way.socket instanceof Socket) way.socket.setKeepAlive(true, KEEP_ALIVE_MS).setNoDelay(true);
    server.handleUpgrade(way.request, way.socket, way.head, (ws) => {
      joined = true;
      const { caller } = way.opened;
      const budget = budgets.join(caller && tenantKey(caller));
      const session = new TerminalSession({
        ...sessionOptions(deps, ws, way),
        budget,
        fields: fieldsOf(way, requestIds.get(way.request) ?? ''),
      });
      sessions.add(session);
      void session.closed.then(() => sessions.delete(session));
      session.start();
    });
    if (!joined) way.opened.close(); // the client left meanwhile
  };

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    requestIds.set(request, requestIdFrom(request.headers['x-request-id']));
    const serving = containFaults(
      () => {
        socket.destroy();
      },
      () => serve(request, socket, head),
    );
    serving.catch((error: unknown) => {
      deps.log.error(
        { entity: 'terminal', requestId: requestIds.get(request), error: String(error) },
        'terminal upgrade failed',
      );
      socket.destroy();
    });
  };

  const stop = async (): Promise<void> => {
    stopping = true;
    for (const session of sessions) session.close(1012, 'the daemon stops');
    await Promise.all([...sessions].map((session) => session.closed));
  };

  return { upgrade, stop };
};

interface Way {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly ask: OpenTerminalRequest;
  readonly opened: OpenTerminal;
}

const sessionOptions = ({ clock, log }: TerminalDeps, ws: WebSocket, { opened }: Way) => ({
  ws,
  opened,
  framed: ws.protocol === TERMINAL_PROTOCOL,
  clock,
  log,
});

const fieldsOf = ({ ask }: Way, requestId: string) => ({
  entity: 'terminal',
  sandboxId: ask.sandboxId,
  requestId,
});

/** Opens within the deadline; a terminal that comes later is closed again. */
const open = async (deps: TerminalDeps, ask: OpenTerminalRequest): Promise<OpenTerminal> => {
  let callOff = (): void => {};
  const deadline = new Promise<undefined>((resolve) => {
    callOff = deps.clock.at(deps.clock.now() + OPEN_DEADLINE_MS, () => resolve(undefined));
  });
  try {
    const opening = deps.operations.openTerminal(ask);
    const opened = await Promise.race([opening, deadline]);
    if (opened) return opened;
    opening.then(
      (late) => late.close(),
      () => {},
    );
    throw unavailable('the terminal did not open in time');
  } finally {
    callOff();
  }
};
