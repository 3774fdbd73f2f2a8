import type { Command } from 'commander';
import type { ServiceAction } from '../common/action.ts';
import { addConnectionOptions } from '../common/connection.ts';
import { leaf } from '../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../common/output.ts';

export const pauseLeaf = (action: ServiceAction): Command =>
  stateLeaf(action, {
    usage: 'pause <sandbox...>',
    summary:
      'Pauses sandboxes: they keep their memory, and their idle timeout stops. They still ' +
      'count against the quota.',
    example: 'sandpool pause "$SANDBOX"',
    state: 'paused',
  });

export const resumeLeaf = (action: ServiceAction): Command =>
  stateLeaf(action, {
    usage: 'resume <sandbox...>',
    summary: 'Resumes paused sandboxes, with their memory.',
    example: 'sandpool resume "$SANDBOX"',
    state: 'running',
  });

const stateLeaf = (
  action: ServiceAction,
  { usage, summary, example, state }: StateTerms,
): Command =>
  addOutputOption(addConnectionOptions(leaf({ usage, summary, examples: [example] }))).action(
    action(async ({ api, context }, [ids], options: OutputOptions) => {
      for (const sandboxId of ids as readonly string[]) {
        const { sandbox } = await api.call('setSandboxState', {
          params: { sandboxId },
          body: { state },
        });
        await show(context, options, {
          value: sandbox,
          text: () => `${sandbox.sandboxId} ${state}\n`,
        });
      }
    }),
  );

interface StateTerms {
  readonly usage: string;
  readonly summary: string;
  readonly example: string;
  readonly state: 'paused' | 'running';
}
