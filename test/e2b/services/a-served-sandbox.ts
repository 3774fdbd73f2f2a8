import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { v7 } from 'uuid';
import type { AuditEntry, CountedEntry } from '../../../src/contracts/audit.ts';
import type { Clock } from '../../../src/contracts/clock.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';
import type { SandboxDriver } from '../../../src/contracts/sandbox-driver.ts';
import { isGone } from '../../../src/http/e2b/services/rpc/rpc-errors.ts';
import { sandboxServices } from '../../../src/http/e2b/services/services.ts';
import { anAdmission } from '../../support/fakes/an-admission.ts';
import type { Admission } from '../../../src/http/limits/admission.ts';
import { errorAnswer } from '../../../src/http/reply/error-table.ts';
import { mayConcern, type PolicyRule } from '../../../src/model/approvals/policy.ts';
import { sandboxNotFound } from '../../../src/model/refusals.ts';
import type { SandboxDetailView } from '../../../src/actors/views.ts';
import type { Caller } from '../../../src/model/tenant.ts';
import { fileOperations } from '../../../src/services/files/files.ts';
import { processOperations } from '../../../src/services/processes/processes.ts';
import { AnswerBudget } from '../../../src/actors/sandbox/commands/answer-budget.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { systemClock } from '../../../src/embedded/system-clock.ts';

export const caller: Caller = {
  ...{ namespace: 'blue', team: 'blue', user: 'ada' },
  role: 'user',
  keyId: 'key',
};
/** Bytes that answers may take. */
export const ANSWER_BYTES = 64 << 20;

export interface ServedSandbox {
  readonly port: number;
  readonly audited: AuditEntry[];
  readonly counted: CountedEntry[];
  /** What its answers may take. */
  readonly answers: AnswerBudget;
  readonly admission: Admission;
  /** Who comes. */
  caller: Caller;
  /** The policy that holds. */
  rules: readonly PolicyRule[];
  /** Its record says that the sandbox ends. */
  isEnding: boolean;
  /** Sandboxes that are let in, though they may be gone. */
  sandboxId: string;
  /** As the daemon does first when it stops. */
  endStreams(): void;
  stop(): void;
}

/** The services of one sandbox of a driver, on a port; whoever comes is its owner. */
export const aServedSandbox = async ({
  driver,
  clock,
  sandboxId,
}: {
  readonly driver: Pick<SandboxDriver, 'processes' | 'files' | 'exec'>;
  readonly clock: Clock;
  readonly sandboxId: string;
}): Promise<ServedSandbox> => {
  const sandboxes = {
    require: async () => ({ envOver: (env: Readonly<Record<string, string>> | undefined) => env }),
    active: () => {},
    busy: () => () => {},
  };
  const audited: AuditEntry[] = [];
  const counted: CountedEntry[] = [];
  const answers = new AnswerBudget({
    ...{ mostBytes: ANSWER_BYTES, tenantPercent: 50, metrics: silentMetrics },
  });
  const admission = anAdmission({
    clients: { isProxy: () => false, knownCaller: () => undefined },
    answers,
  });
  const services = sandboxServices({
    operations: {
      ...processOperations({ sandboxes, driver, clock, newId: v7 }),
      ...fileOperations({
        files: driver.files,
        requireRunning: async () => {},
        begin: () => () => {},
      }),
      getSandbox: async () => {
        if (served.isEnding) throw sandboxNotFound();
        return { status: 'Running' } as SandboxDetailView;
      },
      execInSandbox: (_caller, id, { request, signal }) => driver.exec(id, request, signal),
    },
    clock,
    gate: {
      rulesFor: (operation, method) =>
        served.rules.filter((rule) => mayConcern(rule, { operation, method })),
    },
    admission,
    log: quietLog,
    metrics: silentMetrics,
    audit: {
      note: (entry) => void audited.push(entry),
      count: (entry) => void counted.push(entry),
    },
  });
  const served: ServedSandbox = {
    port: 0,
    ...{ audited, counted, answers, admission, caller, sandboxId },
    rules: [],
    isEnding: false,
    endStreams: () => services.endStreams(),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    try {
      await services(request, response, {
        ...{ caller: served.caller, requestId: 'request', by: 'token' },
        sandboxId: served.sandboxId,
        signal: leaving.signal,
      });
    } catch (error) {
      if (response.headersSent || response.destroyed) return void response.destroy();
      const { status, body } = errorAnswer(error, 'request');
      const code = isGone(error) ? 502 : status;
      response.shouldKeepAlive = request.complete;
      response.writeHead(code, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ code, message: body.error }));
    }
  };
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(served, { port: (server.address() as AddressInfo).port });
};

/** One sandbox in earnest for all tests of a suite. */
export const onAServedSandbox = (): (() => ServedSandbox & { readonly driver: WatchedDriver }) => {
  let driver: WatchedDriver | undefined;
  let served: ServedSandbox | undefined;
  before(async function () {
    driver = await aWatchedDriver();
    const { id } = await driver.launched();
    served = await aServedSandbox({ driver: driver.driver, clock: systemClock(), sandboxId: id });
  });
  after(async function () {
    served?.stop();
    await driver?.close();
  });
  return () => {
    if (!served || !driver) throw new Error('nothing is served');
    return Object.assign(served, { driver });
  };
};
