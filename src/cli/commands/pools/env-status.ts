import type { Command } from 'commander';
import type { Env } from '../../client/wire.ts';
import type { ServiceAction } from '../../common/action.ts';
import { durationText } from '../../common/arguments.ts';
import { addNamespacedOptions } from '../../common/connection.ts';
import { conditionWords, membersOf, memberTable } from '../../show/env-rows.ts';
import { CliFailure } from '../../common/failure.ts';
import { leaf } from '../../common/leaf.ts';
import { addOutputOption, show } from '../../common/output.ts';
import { fields } from '../../show/table.ts';
import { failWhereStopped, type Standing, watch, type WatchOptions } from '../../show/watching.ts';

interface StatusOptions extends WatchOptions {
  readonly watch?: boolean;
}

export const statusLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'status <env>',
        summary:
          'Shows the status of an env’s members. Exits with 1 if a member cannot reach its ' +
          'wanted state, and says why.',
        examples: [
          'sandpool envs status default',
          'sandpool envs status default --watch --timeout 10m',
        ],
      }),
    ),
  )
    .option(
      '-w, --watch',
      'print each change on a line, until all members are in their wanted state; with -o ' +
        'json the env on each line',
    )
    .option('--timeout <duration>', 'with --watch: how long to wait', durationText, '5m')
    .action(
      action(async ({ api, context }, [name], options: StatusOptions) => {
        if (options.watch) {
          return await watch(context, options, {
            look: async () => {
              const { env } = await api.call('getEnv', { params: { name: String(name) } });
              return { value: env, text: linesOf(env), standing: standingOf(env) };
            },
            late: () =>
              new CliFailure(
                `the members of ${String(name)} did not reach their wanted state within ` +
                  `${options.timeout}`,
                [
                  'they continue; check again, or wait longer with --timeout',
                  `to see why: sandpool envs explain ${String(name)}`,
                ],
              ),
          });
        }
        const { env } = await api.call('getEnv', { params: { name: name as string } });
        await show(context, options, { value: env, text: (wide) => statusText(env, wide) });
        failWhereStopped(standingOf(env));
      }),
    );

const standingOf = (env: Env): Standing => {
  const {
    name,
    status: { conditions },
  } = env;
  if (conditions.some(({ type, reason }) => type === 'Ready' && reason === 'Deleting'))
    return { kind: 'stopped', why: `env ${name} is being deleted`, hints: [] };
  const bad = STOPPED_BY.map((type) =>
    conditions.find(
      // a group that cannot grow still serves its instances
      ({ type: one, status, reason }) =>
        one === type && status === 'False' && reason !== 'QuotaReached',
    ),
  ).find((found) => found !== undefined);
  if (bad)
    return {
      kind: 'stopped',
      why:
        `env ${name}: ` +
        `${bad.type === 'QuotaOk' ? 'its owner’s quota is too small for ' : ''}${bad.message}`,
      hints: HINTS[bad.type]?.(name) ?? [],
    };
  const broken = membersOf(env).find(({ state }) => state === 'Error');
  const whySo =
    conditions.find(({ type, status }) => type === 'MembersSynced' && status === 'False')
      ?.message ?? '';
  if (broken)
    return {
      kind: 'stopped',
      why: `member ${broken.name} of ${name} failed${whySo === '' ? '' : `: ${whySo}`}`,
      hints: ['Sandpool tries again'],
    };
  const going =
    conditions.some(({ type, status }) => type === 'Progressing' && status === 'True') ||
    membersOf(env).some(
      ({ state, currentReplicas, desiredReplicas }) =>
        state === 'Pending' || state === 'Draining' || currentReplicas !== desiredReplicas,
    );
  return { kind: going ? 'going' : 'done' };
};

const STOPPED_BY = ['TemplateResolved', 'QuotaOk'] as const;
const HINTS: Readonly<Record<string, (name: string) => readonly string[]>> = {
  TemplateResolved: (name) => [
    `use another template: sandpool envs update ${name} --template NAME`,
  ],
  QuotaOk: () => ['see your usage and limits: sandpool quotas'],
};

const statusText = (env: Env, wide: boolean): string => {
  const {
    name,
    status: { memberCount, idleReplicas, runningReplicas, desiredReplicas },
  } = env;
  const head = fields([
    ['env', name],
    ['members', memberCount],
    ['idle', idleReplicas],
    ['running', runningReplicas],
    ['desired', desiredReplicas],
  ]);
  const conditions = fields(conditionWords(env));
  return [
    head,
    ...(memberCount === 0 ? [] : [memberTable(membersOf(env), wide)]),
    ...(conditions === '' ? [] : [conditions]),
  ].join('\n');
};

const linesOf = (env: Env): string => {
  if (standingOf(env).kind === 'done')
    return (
      `${env.name} is in its wanted state: ${env.status.idleReplicas} idle, ` +
      `${env.status.runningReplicas} running\n`
    );
  return membersOf(env)
    .map(
      ({ name, state, idleCount, runningCount, currentReplicas, desiredReplicas }) =>
        `${name}: ${state}, ${idleCount} idle, ${runningCount} running, ` +
        `${currentReplicas} of ${desiredReplicas}\n`,
    )
    .join('');
};
