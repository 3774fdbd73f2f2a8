import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuditSink } from '../../../contracts/audit.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { Log } from '../../../contracts/log.ts';
import type { Metrics } from '../../../contracts/metrics.ts';
import { Refusal } from '../../../model/refusals.ts';
import { INTERPRETER_PORT } from '../../../model/sandbox.ts';
import type { ApprovalGate } from '../../../services/approvals/approval-gate.ts';
import type { Operations } from '../../../services/operations.ts';
import { SERVICES_PORT } from '../traffic/address.ts';
import type { AddressedSandbox } from '../traffic/addressed-sandbox.ts';
import { Conduct, type AskedPort, type ServedOperation } from './conduct.ts';
import { filesystemService, type FilesystemServiceDeps } from './files/filesystem-service.ts';
import { Homes } from './files/homes.ts';
import { readFile, type ReadFileDeps } from './files/read-file.ts';
import { Watchers } from './files/watchers.ts';
import { writeFiles, type WriteFilesDeps } from './files/write-files.ts';
import { Filesystem } from './generated/filesystem.ts';
import { Process } from './generated/process.ts';
import { processService, type ProcessServiceDeps } from './process/process-service.ts';
import { OPERATIONS } from './rpc/call-guard.ts';
import { pathOf } from './rpc/read-call.ts';
import { rpcServer, type RpcDeps } from './rpc/rpc-server.ts';

/** Clients derive the available features from this version. */
export const ENVD_VERSION = '0.6.4';

export interface ServicesDeps {
  readonly operations: ServedOperations;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly gate: Pick<ApprovalGate, 'rulesFor'>;
  readonly admission: RpcDeps['admission'];
  readonly audit: Pick<AuditSink, 'note' | 'count'> | undefined;
}

export type ServedOperations = ProcessServiceDeps['operations'] &
  FilesystemServiceDeps['operations'] &
  ReadFileDeps['operations'] &
  WriteFilesDeps['operations'] &
  Pick<Operations, 'execInSandbox'>;

/** Rejects before the head is sent, with the client's error. */
export interface SandboxServices {
  (request: IncomingMessage, response: ServerResponse, sandbox: AddressedSandbox): Promise<void>;
  /** Refuses what a rule of this cluster holds and another cluster or a port answers. */
  readonly permit: (request: IncomingMessage, asked: AskedPort) => void;
  /** With `unavailable`: clients reconnect to another replica. */
  readonly endStreams: () => void;
  readonly stop: () => void;
}

const isReading = ({ method }: IncomingMessage): boolean => method === 'GET' || method === 'HEAD';

const operationOf = (request: IncomingMessage): ServedOperation | undefined => {
  const path = pathOf(request);
  if (path === '/files') return isReading(request) ? 'readFile' : 'writeFile';
  const call = path.slice(path.lastIndexOf('/') + 1);
  return Object.hasOwn(OPERATIONS, call) ? OPERATIONS[call] : undefined;
};

/** A request to the code interpreter's port runs code. */
const portOperation = ({ port }: AskedPort): ServedOperation =>
  port === INTERPRETER_PORT ? 'execInSandbox' : 'openEndpoint';

export const sandboxServices = (deps: ServicesDeps): SandboxServices => {
  const { operations, clock, log, admission } = deps;
  const homes = new Homes(operations);
  const watchers = new Watchers({ clock, newId: randomUUID });
  const conduct = new Conduct(deps);
  const processes = processService({ operations, homes, clock });
  const rpc = rpcServer({ clock, log, admission, conduct }, processes.streams, (router) => {
    router.service(Process, processes.calls);
    router.service(Filesystem, filesystemService({ operations, homes, watchers, clock }));
  });
  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    sandbox: AddressedSandbox,
  ): Promise<void> => {
    const path = pathOf(request);
    if (path === '/files') {
      const exchange = { request, response };
      if (isReading(request))
        return await conduct.around(sandbox, 'readFile', () =>
          readFile({ operations, homes, unread: admission.unread }, exchange, sandbox),
        );
      if (request.method === 'POST')
        return await conduct.around(sandbox, 'writeFile', () =>
          writeFiles({ operations, homes }, exchange, sandbox),
        );
      throw new Refusal('METHOD_NOT_ALLOWED', 'use GET to read files, and POST to write them');
    }
    if (!rpc.takes(path)) throw new Refusal('NOT_FOUND', 'there is nothing at this path');
    await rpc.answer(request, response, sandbox);
  };
  return Object.assign(serve, {
    permit: (request: IncomingMessage, asked: AskedPort) => {
      const operation = asked.port === SERVICES_PORT ? operationOf(request) : portOperation(asked);
      if (operation) conduct.permitAsked(asked, operation);
    },
    endStreams: () => rpc.endStreams(),
    stop: () => watchers.stop(),
  });
};
