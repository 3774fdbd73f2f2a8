import { type Command, Option } from 'commander';
import { ApiError } from '../client/api-error.ts';
import type { SandpoolClient } from '../client/sandpool-client.ts';
import { parseDuration } from '../../model/durations.ts';
import type { ServiceAction } from '../common/action.ts';
import { durationText } from '../common/arguments.ts';
import { addConnectionOptions } from '../common/connection.ts';
import { print } from '../common/context.ts';
import { CliFailure } from '../common/failure.ts';
import { leaf } from '../common/leaf.ts';
import { lasting } from '../common/retrying.ts';
import { statusOf } from '../show/rows.ts';
import { progressOn } from '../terminal/progress.ts';

interface WaitOptions {
  readonly for: Wanted;
  readonly timeout: string;
}

type Wanted = 'running' | 'ended' | 'ready';

/** Reading throws if the goal can never be reached. */
interface Standing {
  readonly done: boolean;
  readonly now: string;
}

const LOOK_EVERY_MS = 200;

export const waitLeaf = (action: ServiceAction): Command =>
  addConnectionOptions(
    leaf({
      usage: 'wait <what>',
      summary:
        'Waits until a sandbox runs or has ended, or a pool is ready. Exits with 1 if the time ' +
        'runs out, or if the condition can no longer be met.',
      examples: [
        'sandpool wait pool/default --for ready',
        'sandpool wait "sandbox/$SANDBOX" --for ended --timeout 1h',
      ],
    }),
  )
    .addOption(
      new Option('--for <state>', 'running or ended for sandbox/ID, ready for pool/NAME')
        .choices(['running', 'ended', 'ready'])
        .makeOptionMandatory(),
    )
    .option('--timeout <duration>', 'how long to wait', durationText, '5m')
    .action(
      action(async ({ api, context }, [what], options: WaitOptions) => {
        const look = lasting(context, lookFor(api, String(what), options.for));
        const progress = progressOn(context);
        const now = await until(look, options, (standing) =>
          progress.tell(`waiting for ${String(what)} to be ${options.for}; it is ${standing}`),
        ).finally(() => progress.end());
        await print(context.stdout, `${String(what)} ${now}\n`);
      }),
    );

const until = async (
  look: () => Promise<Standing>,
  { for: wanted, timeout }: WaitOptions,
  tell: (now: string) => void,
): Promise<string> => {
  const deadline = performance.now() + (parseDuration(timeout) ?? 0);
  for (;;) {
    const { done, now } = await look();
    if (done) return now;
    const left = deadline - performance.now();
    if (left <= 0) throw new CliFailure(`after ${timeout} it is ${now}, not ${wanted}`);
    tell(now);
    await new Promise((resolve) => {
      setTimeout(resolve, Math.min(LOOK_EVERY_MS, left));
    });
  }
};

const lookFor = (api: SandpoolClient, what: string, wanted: Wanted): (() => Promise<Standing>) => {
  const [, kind, name = ''] = /^(sandbox|pool)\/(.+)$/.exec(what) ?? [];
  if (kind === undefined)
    throw new CliFailure('name what to wait for: sandbox/ID or pool/NAME', [
      'such as: sandpool wait pool/default --for ready',
    ]);
  if ((kind === 'pool') !== (wanted === 'ready'))
    throw new CliFailure(
      kind === 'pool'
        ? 'for a pool, use --for ready'
        : 'for a sandbox, use --for running or --for ended',
    );
  return kind === 'pool' ? poolLook(api, name) : sandboxLook(api, name, wanted);
};

const poolLook = (api: SandpoolClient, name: string) => async (): Promise<Standing> => {
  const { template } = await api.call('getPool', { params: { name } });
  const { phase } = template.status;
  if (phase === 'Deleting') throw new CliFailure(`pool ${name} is being deleted`);
  return { done: phase === 'Ready', now: phase };
};

/** A missing sandbox has ended if it ever existed: its events are kept for a while. */
const sandboxLook = (
  api: SandpoolClient,
  id: string,
  wanted: Wanted,
): (() => Promise<Standing>) => {
  let seen = false;
  return async () => {
    try {
      const { sandbox } = await api.call('getSandbox', { params: { sandboxId: id } });
      const { status } = sandbox;
      seen = true;
      if (wanted === 'running' && (status === 'Stopping' || status === 'Failed'))
        throw new CliFailure(`sandbox ${id} is ${status}`);
      return { done: wanted === 'running' && status === 'Running', now: statusOf(sandbox) };
    } catch (error) {
      if (!(error instanceof ApiError && error.errorCode === 'SANDBOX_NOT_FOUND')) throw error;
      if (wanted === 'running') throw error;
      // refused with the same message if the service does not know the sandbox
      if (!seen) await api.call('listSandboxEvents', { params: { sandboxId: id } });
      return { done: true, now: 'ended' };
    }
  };
};
