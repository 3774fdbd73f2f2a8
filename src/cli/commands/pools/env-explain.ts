import type { Command } from 'commander';
import type { ServiceAction } from '../../common/action.ts';
import { addNamespacedOptions } from '../../common/connection.ts';
import { type EnvStory, explainEnv } from '../../show/explain-env.ts';
import { leaf } from '../../common/leaf.ts';
import { addOutputOption, type OutputOptions, show } from '../../common/output.ts';

/** `envs explain`. */
export const explainLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'explain <env>',
        summary:
          'Says in words why an env is the size it is: what its groups decided and why, ' +
          'what limits them, and what they wait for.',
        examples: ['sandpool envs explain default'],
      }),
    ),
  ).action(
    action(async (api, context, [name], options: OutputOptions) => {
      const { env } = await api.call('getEnv', { params: { name: name as string } });
      const groups = env.spec.autoscaling.groups.map(({ name: group }) => group);
      const decisions = new Map(
        await Promise.all(
          groups.map(
            async (group) =>
              [
                group,
                (await api.call('listDecisions', { params: { name: env.name, groupName: group } }))
                  .items,
              ] as const,
          ),
        ),
      );
      const story: EnvStory = { env, decisions };
      await show(context, options, {
        value: { env, decisions: Object.fromEntries(decisions) },
        text: () => explainEnv(story),
      });
    }),
  );
