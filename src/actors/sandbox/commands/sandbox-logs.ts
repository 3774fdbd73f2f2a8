import type { SandboxSnapshot } from '../sandbox-snapshot.ts';
import type { Supervisor } from '../supervisor.ts';
import type { Clock } from '../../../contracts/clock.ts';
import type { History } from '../../../contracts/history.ts';
import {
  LogsGone,
  type LogBatch,
  type LogRequest,
  type LogTail,
  type SandboxDriver,
} from '../../../contracts/sandbox-driver.ts';
import { isInstanceId } from '../../../model/identifiers.ts';
import { invalidArgument, logsGone, sandboxNotFound } from '../../../model/refusals.ts';
import { tooManyStreams } from '../../../model/limit-refusals.ts';
import type { FinishedSandbox } from '../../../model/sandbox.ts';
import { sameTenant, tenantKey, type Caller } from '../../../model/tenant.ts';
import type { LogsFollow, LogsRequest, SandboxOperations } from './sandbox-operations.ts';
import { currentSandbox } from './find-sandbox.ts';
import { sandboxPermits } from './sandbox-permits.ts';

export interface SandboxLogsDeps {
  readonly supervisor: Supervisor;
  readonly driver: SandboxDriver;
  readonly history: History;
  readonly clock: Clock;
}

const LIMIT_BYTES = 1 << 20;
/** Memory of a log line besides its text. */
export const LOG_LINE_BYTES = 256;
const MOST_FOLLOWERS = 16;
const MOST_FOLLOWERS_OF_TENANT = 64;

/** Also for finished sandboxes (operation `GET /sandboxes/{sandboxId}/logs`). */
export const sandboxLogs =
  (deps: SandboxLogsDeps): SandboxOperations['sandboxLogs'] =>
  async (caller, sandboxId, request) => {
    const container = await containerOf(deps, caller, { sandboxId, container: request.container });
    const { lines, truncated } = await tailOf(deps, sandboxId, request);
    return { sandboxId, container, lines, truncated };
  };

/** At most 16 streams of one sandbox, and 64 of one tenant. */
export const followSandboxLogs = (
  deps: SandboxLogsDeps,
): SandboxOperations['followSandboxLogs'] => {
  const follow = sandboxPermits(
    { sandbox: MOST_FOLLOWERS, tenant: MOST_FOLLOWERS_OF_TENANT },
    tooManyStreams,
  );
  return async (caller, sandboxId, request) => {
    await containerOf(deps, caller, { sandboxId, container: request.container });
    const tail = await tailOf(deps, sandboxId, request);
    const close = follow(sandboxId, tenantKey(caller));
    return {
      heldBytes: tail.lines.reduce((sum, { text }) => sum + text.length + LOG_LINE_BYTES, 0),
      batches: (signal) =>
        batches(deps.driver, {
          sandboxId,
          container: request.container,
          tail,
          after: request.after,
          signal,
        }),
      close,
    } satisfies LogsFollow;
  };
};

async function* batches(
  driver: SandboxDriver,
  from: {
    sandboxId: string;
    container: string | undefined;
    tail: LogTail;
    after: string | undefined;
    signal: AbortSignal;
  },
): AsyncGenerator<LogBatch, void, undefined> {
  const { sandboxId, container, tail, after, signal } = from;
  if (after === undefined && tail.lines.length > 0) yield { lines: tail.lines, skipped: false };
  yield* driver.followLogs(sandboxId, { after: after ?? tail.next, container }, signal);
}

const tailOf = async (
  { driver, clock }: SandboxLogsDeps,
  sandboxId: string,
  { tailLines, sinceMs, container }: LogsRequest,
): Promise<LogTail> => {
  const request: LogRequest = {
    tailLines,
    limitBytes: LIMIT_BYTES,
    since: sinceMs === undefined ? undefined : clock.now() - sinceMs,
    container,
  };
  try {
    return await driver.logs(sandboxId, request);
  } catch (error) {
    if (error instanceof LogsGone) throw logsGone(error.message);
    throw error;
  }
};

const containerOf = async (
  { supervisor, history }: SandboxLogsDeps,
  caller: Caller,
  meant: { sandboxId: string; container: string | undefined },
): Promise<string> => {
  const { sandboxId, container } = meant;
  if (!isInstanceId(sandboxId)) throw sandboxNotFound();
  const found =
    loggedBy(supervisor.sandbox(sandboxId)) ??
    (await history.find(sandboxId)) ??
    loggedBy(await currentSandbox(supervisor, sandboxId, caller.namespace));
  if (!found || !sameTenant(found.owner, caller)) throw sandboxNotFound();
  const names = Object.keys(found.containerImages);
  const name = container ?? names[0] ?? 'main';
  if (container !== undefined && !names.includes(container))
    throw invalidArgument('container', 'no such container', names);
  return name;
};

const loggedBy = (
  live: SandboxSnapshot | undefined,
): Pick<FinishedSandbox, 'owner' | 'containerImages'> | undefined => {
  const record = live?.context.record ?? live?.context.launchOrder?.record;
  return (
    record && {
      owner: live?.context.record?.claim?.owner ?? record.poolOwner,
      containerImages: record.containerImages,
    }
  );
};
