import type { ExecOutcome } from '../../../contracts/sandbox-driver.ts';
import { TextBytes } from '../../../lib/json-text.ts';
import { formatDuration } from '../../../model/durations.ts';
import { podNameOf } from '../../../model/identifiers.ts';
import type { SandboxReadiness } from '../../../actors/sandbox/commands/sandbox-operations.ts';
import type { SandboxDetailView, SandboxView } from '../../../actors/views.ts';
import { LongAnswer, type TextAsBytes } from '../../reply/long-answer.ts';
import type {
  ExecResultWire,
  SandboxDeletionWire,
  SandboxDetailWire,
  SandboxIdleTimeoutWire,
  SandboxReadinessWire,
  SandboxRecordWire,
  SandboxWire,
} from './schema.ts';
import { timestampOf } from '../../corridor/common-schema.ts';

export const presentSandbox = (view: SandboxView): SandboxWire => ({
  sandboxId: view.id,
  namespace: view.owner.namespace,
  poolName: view.poolName,
  podName: podNameOf(view.id),
  status: view.status,
  claimedAt: timestampOf(view.claimedAt),
  team: view.owner.team,
  user: view.owner.user,
  metadata: view.metadata,
  paused: view.paused,
});

/** `base` is the API's URL without a trailing slash. */
export const presentSandboxDetail = (view: SandboxDetailView, base: string): SandboxDetailWire => ({
  ...presentSandbox(view),
  endpoints: Object.fromEntries(
    Object.entries(view.endpoints).map(([name, { port, scheme, direct }]) => [
      name,
      direct ? `${scheme}://127.0.0.1:${port}/` : `${base}/sandboxes/${view.id}/endpoints/${name}/`,
    ]),
  ),
  endedContainers: view.endedContainers,
  ...(view.status === 'Running' ? idleFields(view) : {}),
});

export const presentSandboxRecord = (view: SandboxView): SandboxRecordWire => ({
  ...presentSandbox(view),
  startedAt: timestampOf(view.startedAt),
  terminatedAt: timestampOf(view.terminatedAt),
  recycledAt: timestampOf(view.recycledAt),
  durationSeconds: view.durationSeconds,
  cpu: view.cpu,
  memory: view.memory,
  containerImages: view.containerImages,
  endReason: view.endReason,
});

export const presentIdleTimeout = (view: SandboxView): SandboxIdleTimeoutWire => ({
  ...presentSandbox(view),
  ...idleFields(view),
});

const idleFields = (view: SandboxView) => ({
  idleTimeout: formatDuration(view.idleTimeoutMs),
  idleExpiresAt: timestampOf(view.idleExpiresAt),
});

export const presentSandboxDeletion = (view: SandboxView): SandboxDeletionWire => ({
  sandboxId: view.id,
  namespace: view.owner.namespace,
  poolName: view.poolName,
  podName: podNameOf(view.id),
  status: 'Stopping',
});

export const presentSandboxReadiness = ({
  sandboxId,
  ready,
  endpoints,
}: SandboxReadiness): SandboxReadinessWire => ({
  sandboxId,
  ready,
  endpoints: Object.fromEntries(
    Object.entries(endpoints).map(([name, endpoint]) => [
      name,
      { ready: endpoint.ready, message: endpoint.message },
    ]),
  ),
});

/** Bytes of each stream in an answer. */
export const EXEC_OUTPUT_LIMIT = 1_048_576;

export const presentExecOutcome = (outcome: ExecOutcome): LongAnswer =>
  new LongAnswer({
    stdout: outputOf(outcome.stdout),
    stderr: outputOf(outcome.stderr),
    exitCode: outcome.exitCode,
    timedOut: outcome.timedOut,
    truncated:
      outcome.truncated ||
      outcome.stdout.length > EXEC_OUTPUT_LIMIT ||
      outcome.stderr.length > EXEC_OUTPUT_LIMIT,
    durationMs: Math.round(outcome.durationMs),
    oomKilled: outcome.outOfMemory,
  } satisfies TextAsBytes<ExecResultWire>);

/** Invalid UTF-8 becomes U+FFFD, except a character that the limit cut. */
const outputOf = (bytes: Buffer): TextBytes =>
  new TextBytes(bytes.subarray(0, EXEC_OUTPUT_LIMIT), { cut: bytes.length >= EXEC_OUTPUT_LIMIT });
