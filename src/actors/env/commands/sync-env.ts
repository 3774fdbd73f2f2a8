import type { EnvRecord } from '../../../model/envs/env.ts';
import { memberPoolPart, withSpec, matchesSpec } from '../../../model/envs/env-rendering.ts';
import {
  envBeingDeleted,
  envSyncPartial,
  poolNotFound,
  Refusal,
  type FailedMember,
} from '../../../model/refusals.ts';
import type { AwayDeps } from './away/away-effects.ts';
import { syncAway } from './away/away-members.ts';
import { findEnv } from './find-env.ts';
import { envFieldOf } from './envs.ts';
import { envViewOf, type EnvViewDeps } from './env-view.ts';
import { memberPool } from './member-pool.ts';
import type { EnvOperations } from './env-operations.ts';
import { refreshTemplate, syncedPool, type SyncPoolDeps } from '../../pool/commands/sync-pool.ts';

export interface SyncEnvDeps extends SyncPoolDeps, EnvViewDeps {
  readonly templates: SyncPoolDeps['templates'];
  readonly supervisor: SyncPoolDeps['supervisor'];
  readonly away?: AwayDeps;
}

const AT_ONCE = 8;

/**
 * Works even without `autoUpdate` (operation `POST /envs/{name}/sync-template`). A failure refuses
 * with ENV_SYNC_PARTIAL and the failed names; a repeated sync does the rest.
 */
export const syncEnv =
  (deps: SyncEnvDeps): EnvOperations['syncEnv'] =>
  async (caller, name) => {
    const env = await findEnv(deps.envs, caller, name);
    if (env.deleting !== false) throw envBeingDeleted();
    await refreshTemplate(deps, { source: { templateName: env.templateRef.name } });
    const names = env.members
      .filter(({ deleting, clusterId }) => deleting === false && clusterId === deps.clusterId)
      .map((member) => member.name);
    const failed: FailedMember[] = [];
    for (let at = 0; at < names.length; at += AT_ONCE) {
      await Promise.all(
        names.slice(at, at + AT_ONCE).map(async (member) => {
          try {
            await syncMember(deps, env, member);
          } catch (error) {
            failed.push({
              member,
              clusterID: env.members.find((each) => each.name === member)?.clusterId ?? '',
              error:
                error instanceof Refusal ? error.message : 'it could not be written; try again',
            });
          }
        }),
      );
    }
    failed.push(...(await syncAway(deps.away, env, deps.clusterId)));
    if (failed.length > 0) {
      const all = env.members.flatMap(({ name: each, deleting }) => (deleting ? [] : [each]));
      throw envSyncPartial(
        all.filter((each) => failed.every(({ member }) => member !== each)),
        failed.sort((a, b) => all.indexOf(a.member) - all.indexOf(b.member)),
      );
    }
    return envViewOf(deps, deps.envs.get(env.uid) ?? env);
  };

const syncMember = async (deps: SyncEnvDeps, env: EnvRecord, name: string): Promise<void> => {
  const { supervisor, members } = deps;
  const member = env.members.find((each) => each.name === name);
  const uid = (await memberPool(deps, env, name))?.record.uid;
  if (!member || uid === undefined) throw poolNotFound(name);
  const part = memberPoolPart(env, member);
  const record = await supervisor.pools.change(uid, (current) =>
    syncedPool(
      { ...deps, fieldOf: envFieldOf },
      matchesSpec(current, part) ? current : withSpec(current, part),
    ),
  );
  if (!record) throw poolNotFound(name);
  members.pool({ kind: 'put', record });
};
