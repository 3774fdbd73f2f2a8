import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Socket } from 'node:net';
import { WebSocketServer, type WebSocket } from 'ws';
import type { AuditEntry, AuditSink } from '../../contracts/audit.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Log } from '../../contracts/log.ts';
import { blankApiKeys } from '../../model/api-key-text.ts';
import { FLEET_KEY_HEADER } from '../../model/fleet/identity-header.ts';
import { containFaults } from '../../lib/fault-scope.ts';
import { Refusal, unavailable } from '../../model/refusals.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { OpenTerminal } from '../../actors/sandbox/commands/sandbox-operations.ts';
import type { ApprovalGate } from '../../services/approvals/approval-gate.ts';
import { refuseHeld } from '../../services/approvals/refuse-held.ts';
import type { Operations } from '../../services/operations.ts';
import type { Clients } from '../limits/clients.ts';
import type { Admission } from '../limits/admission.ts';
import { refusalOf, statusOf } from '../reply/error-table.ts';
import { requestIdFrom } from '../limits/request-head.ts';
import { DEFAULT_FRAMES, FrameBudgets, type FrameBudgetTerms } from './frame-budget.ts';
import { processTarget, readProcessRequest, requireHandshake } from './process-request.ts';
import { openProcess, type ProcessTerminalDeps } from './process-terminal.ts';
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
  readonly processes?: ProcessUpgrades;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether a manager sent the upgrade over a link. */
  readonly isLinked?: Clients['isLinked'];
  readonly audit?: AuditSink;
  /** Absent for the default limits. */
  readonly frames?: FrameBudgetTerms;
}

/** Callers need a valid key. */
export interface ProcessUpgrades extends ProcessTerminalDeps {
  readonly clients: Pick<Clients, 'authenticate' | 'followKey'>;
  readonly admission: Pick<Admission, 'count'>;
  /** Absent without approval rules. */
  readonly gate?: Pick<ApprovalGate, 'rulesFor'>;
}

export interface TerminalUpgrades {
  /** Handles `upgrade`: opens a terminal, or refuses and closes the socket. Never throws. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /**
   * Ends terminals with 1012 and refuses new ones. Resolves when all are closed, in about 3 s. May
   * be repeated.
   */
  readonly stop: () => Promise<void>;
}

export const PROCESS_OPERATIONS = [
  'followProcess',
  'writeToProcess',
  'signalProcess',
  'resizeProcess',
] as const;

/** Upgrades that wait for their terminal; more are refused. */
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
    // handle one frame per connection and event-loop turn, however many arrived
    allowSynchronousEvents: false,
  };
  const server = new WebSocketServer(options);
  const sessions = new Set<TerminalSession>();
  const pending = new Set<Duplex>();
  const requestIds = new WeakMap<IncomingMessage, string>();
  const budgets = new FrameBudgets(deps.frames ?? DEFAULT_FRAMES, () => deps.clock.now());
  let stopping = false;

  const linkedKeys = new WeakMap<IncomingMessage, string>();
  server.on('headers', (headers, request) => {
    headers.push(
      `X-Request-Id: ${requestIds.get(request) ?? requestIdFrom(request.headers['x-request-id'])}`,
    );
    const linkedKeyId = linkedKeys.get(request);
    if (linkedKeyId !== undefined) headers.push(`${FLEET_KEY_HEADER}: ${linkedKeyId}`);
  });
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
        'terminal-refused',
      );
    else
      deps.log.error(
        { entity: 'terminal', requestId, error: String(error) },
        'terminal-did-not-open',
      );
    refuseUpgrade(socket, error, { requestId, clock: deps.clock });
  };

  const note = (
    request: IncomingMessage,
    { operation, params }: Ask,
    outcome: Pick<AuditEntry, 'status' | 'caller' | 'errorCode'>,
  ): void => {
    deps.audit?.note({
      requestId: requestIds.get(request) ?? '',
      operation,
      params: Object.fromEntries(
        Object.entries(params).map(([name, id]) => [name, blankApiKeys(id.slice(0, 256))]),
      ),
      ...outcome,
    });
  };

  const serve = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const ask = askOf(request, deps);
    if (ask instanceof Refusal) return refuse(request, socket, ask);
    if (stopping || pending.size >= MAX_PENDING) return refuse(request, socket, draining());
    pending.add(socket);
    let opened: OpenTerminal;
    try {
      opened = await openInTime(deps.clock, ask.open);
    } catch (error) {
      const failure = ask.failure(error);
      const errorCode = refusalOf(failure)?.code ?? 'INTERNAL';
      note(request, ask, { status: statusOf(errorCode), errorCode });
      return refuse(request, socket, failure);
    } finally {
      pending.delete(socket);
    }
    note(request, ask, { status: 101, caller: opened.caller });
    if (stopping) {
      opened.close();
      return refuse(request, socket, draining());
    }
    join({ request, socket, head, ask, opened });
  };

  const join = (way: Way): void => {
    let joined = false;
    const { linkedKeyId } = way.opened;
    if (linkedKeyId !== undefined) linkedKeys.set(way.request, linkedKeyId);
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
    if (!joined) way.opened.close(); // the client has left
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
        'terminal-upgrade-failed',
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

interface Ask {
  readonly operation: 'openTerminal' | 'followProcess';
  readonly params: Readonly<Record<string, string>>;
  readonly open: () => Promise<OpenTerminal>;
  readonly failure: (error: unknown) => unknown;
}

const askOf = (request: IncomingMessage, deps: TerminalDeps): Ask | Refusal => {
  const target = deps.processes && processTarget(request.url ?? '');
  if (deps.processes && target) return processAsk(request, { deps, target }, deps.processes);
  const read = readTerminalRequest(request, deps);
  if ('refusal' in read) return read.refusal;
  const asked = { ...read.ask, ...(deps.isLinked?.(request) ? { overLink: true } : {}) };
  return {
    operation: 'openTerminal',
    params: { sandboxId: asked.sandboxId },
    open: () => deps.operations.openTerminal(asked),
    failure: openingFailure,
  };
};

const processAsk = (
  request: IncomingMessage,
  of: { readonly deps: TerminalDeps; readonly target: Ask['params'] },
  processes: ProcessUpgrades,
): Ask => {
  const { clusterId = '', allowedOrigins = [] } = of.deps;
  return {
    operation: 'followProcess',
    params: of.target,
    open: async () => {
      requireHandshake(request, allowedOrigins);
      const caller = await processes.clients.authenticate(request);
      processes.admission.count(caller, request);
      const read = readProcessRequest(request, clusterId);
      if (processes.gate) {
        const { sandboxId, processId } = read;
        refuseHeld(processes.gate, caller, {
          operations: PROCESS_OPERATIONS,
          params: { sandboxId, processId },
        });
      }
      return await openProcess(processes, caller, read);
    },
    failure: (error) => error,
  };
};

interface Way {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly ask: Ask;
  readonly opened: OpenTerminal;
}

const sessionOptions = ({ clock, log }: TerminalDeps, ws: WebSocket, { ask, opened }: Way) => ({
  ws,
  opened,
  framed: ask.operation === 'followProcess' || ws.protocol === TERMINAL_PROTOCOL,
  clock,
  log,
});

const fieldsOf = ({ ask }: Way, requestId: string) => ({
  entity: 'terminal',
  ...ask.params,
  requestId,
});

/** Closes a terminal that opens after the deadline. */
const openInTime = async (clock: Clock, open: Ask['open']): Promise<OpenTerminal> => {
  let callOff = (): void => {};
  const deadline = new Promise<undefined>((resolve) => {
    callOff = clock.at(clock.now() + OPEN_DEADLINE_MS, () => resolve(undefined));
  });
  try {
    const opening = open();
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
