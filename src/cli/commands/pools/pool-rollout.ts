import type { Command } from 'commander';
import { ApiError } from '../../client/api-error.ts';
import type { SandpoolClient } from '../../client/sandpool-client.ts';
import type { Pool } from '../../client/wire.ts';
import { DEFAULT_UPDATE_STRATEGY } from '../../../model/pools/pool.ts';
import type { ServiceAction } from '../../common/action.ts';
import { durationText } from '../../common/arguments.ts';
import { addNamespacedOptions } from '../../common/connection.ts';
import { CliFailure } from '../../common/failure.ts';
import { group, leaf } from '../../common/leaf.ts';
import { templateOf } from '../../show/rows.ts';
import { addOutputOption, show } from '../../common/output.ts';
import { fields } from '../../show/table.ts';
import { failWhereStopped, type Standing, watch, type WatchOptions } from '../../show/watching.ts';

export const rolloutGroup = (action: ServiceAction): Command =>
  group('rollout', 'Shows how far a pool’s change has reached its idle instances', [
    statusLeaf(action),
  ]);

interface StatusOptions extends WatchOptions {
  readonly watch?: boolean;
}

const statusLeaf = (action: ServiceAction): Command =>
  addOutputOption(
    addNamespacedOptions(
      leaf({
        usage: 'status <pool>',
        summary:
          "Shows the progress of a pool's rollout. Exits with 1 if the rollout has stopped, and " +
          'says why.',
        examples: [
          'sandpool pools rollout status default',
          'sandpool pools rollout status default --watch --timeout 10m',
        ],
      }),
    ),
  )
    .option(
      '-w, --watch',
      'print each change on a line, until the rollout is done; with -o json the pool on each line',
    )
    .option('--timeout <duration>', 'with --watch: how long to wait', durationText, '5m')
    .action(
      action(async ({ api, context }, [name], options: StatusOptions) => {
        if (options.watch) {
          return await watch(context, options, {
            look: async () => {
              const { pool, standing } = await look(api, String(name));
              return { value: pool, text: lineOf(pool, standing), standing };
            },
            late: () =>
              new CliFailure(
                `the rollout of ${String(name)} was not done within ${options.timeout}`,
                ['it continues; check again, or wait longer with --timeout'],
              ),
          });
        }
        const { pool, standing } = await look(api, String(name));
        await show(context, options, { value: pool, text: () => rolloutFields(pool, standing) });
        failWhereStopped(standing);
      }),
    );

interface LookedAt {
  readonly pool: Pool;
  readonly standing: Standing;
}

/**
 * A pool receives a template's change a moment later; until then its status shows nothing of it.
 */
const look = async (api: SandpoolClient, name: string): Promise<LookedAt> => {
  const { template: pool } = await api.call('getPool', { params: { name } });
  const standing = standingOf(pool);
  return {
    pool,
    standing:
      standing.kind === 'done' && (await isBehind(api, pool)) ? { kind: 'going' } : standing,
  };
};

const isBehind = async (api: SandpoolClient, pool: Pool): Promise<boolean> => {
  const {
    spec,
    status: { observedTemplateVersion },
  } = pool;
  const templateName = templateOf(pool);
  if (
    templateName === undefined ||
    observedTemplateVersion === undefined ||
    spec.templateVersion !== undefined ||
    spec.updateStrategy?.autoUpdate === false
  )
    return false;
  try {
    return (
      Number((await api.call('getTemplate', { params: { name: templateName } })).template.version) >
      Number(observedTemplateVersion)
    );
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false; // the template was deleted
    throw error;
  }
};

const standingOf = ({ name, status }: Pool): Standing => {
  const condition = (type: string): Pool['status']['conditions'][number] | undefined =>
    status.conditions.find((one) => one.type === type);
  const [progress, degraded, resolved] = [
    condition('Progressing'),
    condition('Degraded'),
    condition('TemplateResolved'),
  ];
  if (status.phase === 'Deleting')
    return { kind: 'stopped', why: `pool ${name} is being deleted`, hints: [] };
  if (progress?.reason === 'UpdateHeld')
    return {
      kind: 'stopped',
      why: `the rollout of ${name} waits: ${progress.message}`,
      hints: [
        `preview it: sandpool pools sync-template ${name} --preview`,
        `apply it:   sandpool pools sync-template ${name}`,
      ],
    };
  if (progress?.reason === 'RolloutBlocked')
    return {
      kind: 'stopped',
      why: `the rollout of ${name} has stopped: ${progress.message}`,
      hints: mend(name),
    };
  if (degraded?.reason === 'StartsFail')
    return {
      kind: 'stopped',
      why: `instances of ${name} do not start: ${degraded.message}`,
      hints: mend(name),
    };
  if (resolved?.status === 'False')
    return {
      kind: 'stopped',
      why: `${name} cannot use its template: ${resolved.message}`,
      hints: mend(name),
    };
  return {
    kind:
      status.phase === 'Ready' && status.outdatedReplicas === 0 && progress?.status !== 'True'
        ? 'done'
        : 'going',
  };
};

const mend = (name: string): readonly string[] => [
  `change the pool or its template: sandpool pools update ${name}`,
];

const lineOf = (pool: Pool, standing: Standing): string => {
  const {
    name,
    status: { updateRevision, updatedReplicas, outdatedReplicas, startingReplicas },
  } = pool;
  if (standing.kind === 'done')
    return `${name} is rolled out: ${updatedReplicas} of revision ${updateRevision}\n`;
  return (
    `${name}: ${updatedReplicas} of revision ${updateRevision}, ${startingReplicas} ` +
    `starting, ${outdatedReplicas} to be replaced\n`
  );
};

const rolloutFields = (pool: Pool, standing: Standing): string => {
  const { name, templateVersion, spec, status } = pool;
  const { autoUpdate, maxUnavailable } = { ...DEFAULT_UPDATE_STRATEGY, ...spec.updateStrategy };
  return fields([
    ['pool', name],
    ['phase', status.phase],
    ['rollout', WORDS[standing.kind]],
    ['revision', status.updateRevision],
    ['template version', templateVersion],
    ['replicas', spec.replicas],
    ['updated', status.updatedReplicas],
    ['to be replaced', status.outdatedReplicas],
    ['starting', status.startingReplicas],
    ['auto update', autoUpdate ? 'on' : 'off'],
    ['max unavailable', maxUnavailable],
  ]);
};

const WORDS: Readonly<Record<Standing['kind'], string>> = {
  done: 'done',
  going: 'under way',
  stopped: 'stopped',
};
