import type { Command } from 'commander';
import { Option } from 'commander';
import type { Page, Pool, Sandbox } from '../client/wire.ts';
import { formatDuration } from '../model/durations.ts';
import { type CliContext, print, say } from './context.ts';
import { fields, table } from './table.ts';

export interface OutputOptions {
  readonly output: 'table' | 'json';
}

export const addOutputOption = (command: Command): Command =>
  command.addOption(new Option('-o, --output <form>', 'the form of what is printed').choices(['table', 'json']).default('table'));

/** What the service answered, or the text for people. */
export const show = async ({ stdout }: CliContext, { output }: OutputOptions, { value, text }: { readonly value: unknown; readonly text: () => string }): Promise<void> => {
  await print(stdout, output === 'json' ? `${JSON.stringify(value, undefined, 2)}\n` : text());
};

/** Says so where a list has more than was shown. */
export const sayIfMore = async (context: CliContext, { items, total, offset }: Page<unknown>): Promise<void> => {
  if (offset + items.length < total) await say(context, `${items.length} of ${total} shown; --limit and --offset show others`);
};

export const sandboxTable = (sandboxes: readonly Sandbox[]): string => table(
  ['SANDBOX', 'POOL', 'STATUS', 'CLAIMED', 'DURATION', 'END'],
  sandboxes.map((sandbox) => [
    sandbox.sandboxId, sandbox.poolName, sandbox.status, shortTime(sandbox.claimedAt) ?? '-',
    sandbox.durationSeconds === undefined ? '-' : formatDuration(sandbox.durationSeconds * 1_000), sandbox.endReason ?? '-',
  ]),
);

export const sandboxFields = (sandbox: Sandbox): string => fields([
  ['sandbox', sandbox.sandboxId], ['status', sandbox.status], ['pool', sandbox.poolName], ['namespace', sandbox.namespace],
  ['owner', `${sandbox.team}/${sandbox.user}`], ['workload', sandbox.podName], ['claimed', shortTime(sandbox.claimedAt)],
  ['started', shortTime(sandbox.startedAt)], ['terminated', shortTime(sandbox.terminatedAt)], ['end', sandbox.endReason],
  ['idle timeout', sandbox.idleTimeout], ['idle until', shortTime(sandbox.idleExpiresAt)], ['cpu', sandbox.cpu], ['memory', sandbox.memory],
  ...Object.entries(sandbox.endpoints ?? {}).map(([name, url]) => [`endpoint ${name}`, url] as const),
]);

export const poolTable = (pools: readonly Pool[]): string => table(
  ['POOL', 'PHASE', 'REPLICAS', 'IDLE', 'STARTING', 'RUNNING', 'FAILED', 'CPU', 'MEMORY'],
  pools.map(({ name, spec, status, cpu, memory }) => [
    name, status.phase, ...[spec.replicas, status.idleReplicas, status.startingReplicas, status.runningReplicas, status.failedReplicas].map(String), cpu, memory,
  ]),
);

export const poolFields = (pool: Pool): string => fields([
  ['pool', pool.name], ['phase', pool.status.phase], ['namespace', pool.namespace], ['owner', `${pool.team}/${pool.user}`],
  ['template', pool.annotations?.['sandpool.dev/template-name']], ['template version', pool.templateVersion], ['created', shortTime(pool.createdAt)],
  ['cpu', pool.cpu], ['memory', pool.memory], ['replicas', pool.spec.replicas], ['idle', pool.status.idleReplicas],
  ['unavailable', pool.status.unavailableIdleReplicas], ['starting', pool.status.startingReplicas], ['running', pool.status.runningReplicas],
  ['stopping', pool.status.stoppingReplicas], ['failed', pool.status.failedReplicas],
]);

/** To the second. */
const shortTime = (timestamp: string | undefined): string | undefined => timestamp?.replace(/\.\d+Z$/, 'Z');
