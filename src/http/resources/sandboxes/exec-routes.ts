import { jsonLength } from '../../../lib/json-text.ts';
import { endedWhilePrinting } from '../../../model/limit-refusals.ts';
import { invalidArgument, Refusal } from '../../../model/refusals.ts';
import type { AnswerRoom } from '../../../actors/sandbox/commands/answer-budget.ts';
import type { Operations } from '../../../services/operations.ts';
import {
  EXEC_OUTPUT_LIMIT,
  presentExecOutcome,
  presentIdleTimeout,
  presentSandbox,
} from './presenter.ts';
import {
  DEPRECATED_SINCE,
  ok,
  route,
  secret,
  versioned,
  type Route,
} from '../../corridor/route.ts';
import {
  ExecBody,
  ExecResult,
  ExecToken,
  IdleTimeoutBody,
  IdleTimeoutEnvelope,
  SandboxEnvelope,
  SandboxPath,
  SandboxStateBody,
} from './schema.ts';

export const execRoutes = (operations: Operations): readonly Route[] => [
  execInSandbox(operations),
  createExecToken(operations),
  setSandboxState(operations),
  setIdleTimeout(operations),
];

const execInSandbox = (operations: Operations): Route =>
  route({
    operationId: 'execInSandbox',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/exec',
    access: 'tenant',
    summary: 'Run a command and wait until it ends',
    params: SandboxPath,
    body: ExecBody,
    answers: { 200: ExecResult },
    effect: { kind: 'unkeyed' },
    waits: true,
    refusals: ['SANDBOX_NOT_FOUND', 'SANDBOX_NOT_RUNNING', 'TOO_MANY_COMMANDS', 'UNAVAILABLE'],
    deprecated: {
      since: DEPRECATED_SINCE,
      method: 'POST',
      successor: '/sandboxes/{sandboxId}/processes',
    },
    handle: async ({ caller, params, body, signal, room }) => {
      const { command, timeoutSeconds, ...rest } = body;
      const argv = typeof command === 'string' ? ['/bin/sh', '-c', command] : command;
      const gathered = gatheredInto(room(), Buffer.byteLength(rest.stdin ?? ''));
      const request = {
        ...rest,
        argv,
        timeoutMs: timeoutSeconds * 1_000,
        outputLimit: EXEC_OUTPUT_LIMIT,
        gathered,
      };
      return ok(
        presentExecOutcome(
          await operations.execInSandbox(caller, params.sandboxId, {
            request,
            signal: signal(),
          }),
        ),
      );
    },
  });

const createExecToken = (operations: Operations): Route =>
  route({
    operationId: 'createExecToken',
    method: 'POST',
    path: '/sandboxes/{sandboxId}/exec-token',
    access: 'tenant',
    summary: 'Create a single-use token for a terminal',
    params: SandboxPath,
    answers: { 200: ExecToken },
    effect: { kind: 'unkeyed' },
    refusals: ['SANDBOX_NOT_FOUND', 'SANDBOX_NOT_RUNNING', 'UNAVAILABLE'],
    handle: async ({ caller, params }) =>
      secret(ok({ token: await operations.createExecToken(caller, params.sandboxId) })),
  });

const setSandboxState = (operations: Operations): Route =>
  route({
    operationId: 'setSandboxState',
    method: 'PUT',
    path: '/sandboxes/{sandboxId}/state',
    access: 'tenant',
    summary: 'Pause or resume a sandbox',
    params: SandboxPath,
    body: SandboxStateBody,
    answers: { 200: SandboxEnvelope },
    refusals: ['SANDBOX_NOT_FOUND', 'SANDBOX_NOT_RUNNING', 'FEATURE_DISABLED', 'UNAVAILABLE'],
    handle: async ({ caller, params, body: { state } }) =>
      ok({
        sandbox: presentSandbox(await operations.setSandboxState(caller, params.sandboxId, state)),
      }),
  });

const setIdleTimeout = (operations: Operations): Route =>
  route({
    operationId: 'setIdleTimeout',
    method: 'PUT',
    path: '/sandboxes/{sandboxId}/idle-timeout',
    access: 'tenant',
    summary: 'Set the idle timeout of a sandbox',
    params: SandboxPath,
    body: IdleTimeoutBody,
    rules: {
      body: ({ body: { idleTimeout, idleTimeoutSeconds = idleTimeout } }) => ({
        idleTimeout: (idleTimeoutSeconds ?? 0) / 1_000,
      }),
    },
    answers: { 200: IdleTimeoutEnvelope },
    versioned: true,
    refusals: [
      'SANDBOX_NOT_FOUND',
      'SANDBOX_NOT_RUNNING',
      'CONFLICT',
      'PRECONDITION_FAILED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params, body: { idleTimeout, idleTimeoutSeconds }, incoming }) => {
      if (idleTimeout === undefined && idleTimeoutSeconds === undefined)
        throw invalidArgument('idleTimeout', 'is required');
      if (idleTimeout !== undefined && idleTimeoutSeconds !== undefined) {
        throw invalidArgument('idleTimeoutSeconds', 'must not be given beside idleTimeout');
      }
      const view = await operations.setIdleTimeout(caller, params.sandboxId, {
        idleTimeoutMs: idleTimeout ?? idleTimeoutSeconds ?? 0,
        ifMatch: incoming.ifMatch,
      });
      return versioned(ok({ sandbox: presentIdleTimeout(view) }), view.revision);
    },
  });

/**
 * Output reserved before a command starts. Most print less, so they never end for lack of memory.
 */
const FIRST_BYTES = 64 << 10;

/**
 * Reserves memory for input and first output; the returned function reserves more. Both throw if
 * the budget is exhausted.
 */
const gatheredInto = (room: AnswerRoom, inputBytes: number): ((bytes: Buffer) => void) => {
  room.hold(inputBytes + FIRST_BYTES);
  let printed = 0;
  return (bytes) => {
    printed += jsonLength(bytes);
    try {
      room.holdAtLeast(inputBytes + printed);
    } catch (error) {
      throw error instanceof Refusal ? endedWhilePrinting(error) : error;
    }
  };
};
