import { isSameData } from '../../../lib/plain-data.ts';
import type { Supervisor } from '../../sandbox/supervisor.ts';
import type { Coordination } from '../../../contracts/coordination.ts';
import { RecordExists, type Records } from '../../../contracts/record-store.ts';
import type { PullSecretOwner, PullSecrets } from '../../../contracts/pull-secrets.ts';
import { OutcomeUnknown, type SandboxDriver } from '../../../contracts/sandbox-driver.ts';
import { requireMatch } from '../../../model/if-match.ts';
import { wordRevisionOf, type EnvRecord } from '../../../model/envs/env.ts';
import { memberSourceOf, type RenderedEnvSpec } from '../../../model/envs/env-rendering.ts';
import type { RegistryCredentials } from '../../../model/pools/pool-source.ts';
import {
  envAlreadyExists,
  envHasRunningSandboxes,
  idempotencyKeyReused,
  invalidArgument,
  Refusal,
  unavailable,
} from '../../../model/refusals.ts';
import { tooManyEnvs } from '../../../model/limit-refusals.ts';
import { accessField, sameTenant, type Caller, type Tenant } from '../../../model/tenant.ts';
import { envViewOf, lookedAt, OwnersRoom, type EnvViewDeps } from './env-view.ts';
import type { AwayDeps } from './away/away-effects.ts';
import { lookAway } from './away/away-members.ts';
import { changeEnv, findEnv, findUsableEnv } from './find-env.ts';
import { memberPool } from './member-pool.ts';
import type { EnvOperations } from './env-operations.ts';
import { renderSource, type PoolRenderingDeps } from '../../pool/commands/pool-rendering.ts';
import { tiePasswords } from '../../pool/commands/tie-passwords.ts';
import { patched, configured } from './patched-env.ts';

const MOST_ENVS = 1_000;

export interface EnvsDeps extends PoolRenderingDeps, EnvViewDeps {
  readonly templates: EnvViewDeps['templates'];
  readonly envRecords: Pick<Records<EnvRecord>, 'create'>;
  readonly newUid: () => string;
  readonly pullSecrets: PullSecrets;
  readonly coordination: Coordination;
  readonly supervisor: Pick<Supervisor, 'pools' | 'reconcileLater'>;
  readonly background: (name: string, work: Promise<void>) => void;
  readonly driver: Pick<SandboxDriver, 'check' | 'caughtUp'>;
  readonly away?: AwayDeps;
}

/** Creates an env without members (operation `POST /envs`). */
export const createEnv =
  (deps: EnvsDeps): EnvOperations['createEnv'] =>
  async (caller, request) => {
    const {
      registries = [],
      name,
      labels,
      annotations,
      envDocs,
      templateRef,
      mode,
      mark,
    } = request;
    const owner: Tenant = { namespace: caller.namespace, team: caller.team, user: caller.user };
    const overrides = configured(request.overrides, registries.length > 0);
    await requireRenderable(
      deps,
      { templateRef, overrides },
      { namespace: caller.namespace, members: [] },
    );
    if (deps.envs.named(caller.namespace, name)) throw envAlreadyExists();
    if (deps.envs.index.list(owner, 0, 0).total >= MOST_ENVS) throw tooManyEnvs(MOST_ENVS);
    const draft = {
      uid: deps.newUid(),
      name,
      owner,
      createdAt: deps.clock.now(),
      mark,
      labels,
      annotations,
      envDocs,
      ...accessField(request.access),
      templateRef,
      mode,
      overrides,
      members: [],
      groups: [],
      scaling: {},
      conditions: [],
      deleting: false as const,
    };
    const record =
      registries.length === 0
        ? await stored(deps, draft)
        : await createWithPasswords(deps, draft, registries);
    if (registries.length > 0)
      deps.background('pull secret', tiePasswords(deps, secretOwnerOf(draft), registries));
    return envViewOf(deps, record);
  };

type EnvDraft = Omit<EnvRecord, 'revision'>;

const stored = async (
  { envRecords }: Pick<EnvsDeps, 'envRecords'>,
  draft: EnvDraft,
): Promise<EnvRecord> => {
  try {
    return await envRecords.create(draft);
  } catch (error) {
    throw error instanceof RecordExists ? envAlreadyExists() : error;
  }
};

/**
 * The passwords come before the record, so that nothing starts without them. The reservation before
 * both lets reconciliation delete the passwords if this replica dies.
 */
const createWithPasswords = async (
  deps: EnvsDeps,
  draft: EnvDraft,
  registries: readonly RegistryCredentials[],
): Promise<EnvRecord> => {
  const { coordination, pullSecrets, supervisor } = deps;
  const { owner, uid } = draft;
  supervisor.reconcileLater(owner);
  await coordination.whenKnown(owner);
  await coordination.reserve(owner, 'pools', {
    name: uid,
    amount: 0,
    limit: Number.POSITIVE_INFINITY,
  });
  try {
    await pullSecrets.keep(secretOwnerOf(draft), registries);
    const record = await stored(deps, draft);
    await coordination.release(owner, 'pools', uid).catch(() => undefined);
    return record;
  } catch (error) {
    // If the undo fails, reconciliation of the reservation repeats it.
    if (
      !(error instanceof OutcomeUnknown) &&
      (await pullSecrets.forget(secretOwnerOf(draft)).then(
        () => true,
        () => false,
      ))
    )
      await coordination.release(owner, 'pools', uid).catch(() => undefined);
    throw error;
  }
};

export const findEnvByKey =
  (deps: EnvViewDeps): EnvOperations['findEnvByKey'] =>
  async (caller, name, mark) => {
    if (!deps.envs.named(caller.namespace, name))
      await deps.envs.lookUp(`${caller.namespace}/${name}`);
    const record = deps.envs.named(caller.namespace, name);
    if (!record || !sameTenant(record.owner, caller) || record.mark?.key !== mark.key)
      return undefined;
    if (record.mark.body !== mark.body) throw idempotencyKeyReused();
    return envViewOf(deps, record);
  };

/** Operation `GET /envs/{name}`. */
export const getEnv =
  (deps: EnvViewDeps): EnvOperations['getEnv'] =>
  async (caller, name) =>
    await lookedAt(deps, await findUsableEnv(deps.envs, caller, name));

/**
 * Own and shared envs, newest first (operation `GET /envs`). `all` includes everybody's for an
 * admin.
 */
export const listEnvs =
  (deps: EnvViewDeps): EnvOperations['listEnvs'] =>
  async (caller, filter, { limit, offset }) => {
    const { ids, total } = deps.envs.index.listFor(
      caller.role === 'admin' && filter.all ? undefined : caller,
      offset,
      limit,
    );
    const room = new OwnersRoom(deps);
    const items = ids
      .flatMap((uid) => deps.envs.get(uid) ?? [])
      .map((record) => envViewOf(deps, record, room));
    return { items, total, limit, offset };
  };

/**
 * Keeps members and groups (operation `PUT /envs/{name}`). Durable when this resolves; the members'
 * pools follow later.
 */
export const replaceEnv =
  (deps: EnvsDeps): EnvOperations['replaceEnv'] =>
  async (caller, name, { ifMatch, registries, ...change }) => {
    const before = await findEnv(deps.envs, caller, name);
    if (change.name !== undefined && change.name !== before.name)
      throw invalidArgument('name', `must be ${before.name}`);
    const mode: string = before.mode;
    if (change.mode !== undefined && change.mode !== mode)
      throw invalidArgument('mode', `must be ${mode}`, [mode]);
    const { templateRef, labels, annotations } = change;
    // Answers never contain passwords, so a client can't send them back.
    const overrides = configured(
      change.overrides,
      registries ? registries.length > 0 : before.overrides.imagePullSecretConfigured === true,
    );
    return await written(deps, before, {
      ifMatch,
      registries,
      change: ({ access: _before, ...env }) => ({
        ...env,
        ...accessField(change.access),
        templateRef,
        overrides,
        labels,
        annotations,
      }),
    });
  };

/** Operation `PATCH /envs/{name}`, with the guarantees of `replaceEnv`. */
export const patchEnv =
  (deps: EnvsDeps): EnvOperations['patchEnv'] =>
  async (caller, name, { ifMatch, registries, patch }) =>
    await written(deps, await findEnv(deps.envs, caller, name), {
      ifMatch,
      registries,
      change: (env) => patched(env, patch, registries),
    });

/**
 * Deletes an env after its members (operation `DELETE /envs/{name}`). Refuses while its sandboxes
 * run, unless `force`, which ends them. Durable when this resolves; may be repeated.
 */
export const deleteEnv =
  (deps: EnvsDeps): EnvOperations['deleteEnv'] =>
  async (caller, name, { force }) => {
    const before = await findEnv(deps.envs, caller, name);
    if (!force && before.deleting === false) await requireNoneRunning(deps, before);
    const record = await deps.envs.change(before.uid, (env) => {
      const deleting =
        force || env.deleting === 'force' ? ('force' as const) : ('keep-running' as const);
      return env.deleting === deleting ? env : { ...env, deleting };
    });
    return envViewOf(deps, record ?? { ...before, deleting: 'keep-running' });
  };

const requireNoneRunning = async (deps: EnvsDeps, env: EnvRecord): Promise<void> => {
  try {
    await Promise.all([
      deps.driver.caughtUp(),
      lookAway(deps.away, env, deps.clusterId),
      ...env.members.map(({ name }) => memberPool(deps, env, name)),
    ]);
  } catch (error) {
    throw error instanceof Refusal
      ? error
      : unavailable(
          'it is not known right now whether sandboxes of the env are running; try again',
        );
  }
  const running = envViewOf(deps, env).observed.reduce((sum, member) => sum + member.running, 0);
  if (running > 0) throw envHasRunningSandboxes(running);
};

/** Refuses as `renderSource` does, with the env's field names. */
const requireRenderable = async (
  deps: PoolRenderingDeps,
  env: RenderedEnvSpec,
  { namespace, members }: { readonly namespace: string; readonly members: EnvRecord['members'] },
): Promise<void> => {
  const configs = members.length === 0 ? [{}] : members.map(({ config }) => config);
  for (const config of configs)
    await renderSource({ ...deps, fieldOf: envFieldOf }, memberSourceOf(env, config), namespace);
};

export const envFieldOf = (field: string): string => FIELDS[field] ?? field;

const FIELDS: Readonly<Record<string, string>> = {
  templateName: 'templateRef.name',
  templateVersion: 'templateRef.version',
};

interface Write {
  readonly ifMatch: Parameters<typeof requireMatch>[0];
  readonly registries: readonly RegistryCredentials[] | undefined;
  readonly change: (env: EnvRecord) => EnvRecord;
}

const written = async (
  deps: EnvsDeps,
  before: EnvRecord,
  { ifMatch, registries, change }: Write,
) => {
  requireMatch(ifMatch, wordRevisionOf(before));
  const here = before.members.filter(({ clusterId }) => clusterId === deps.clusterId);
  if (registries && registries.length > 0 && here.length < before.members.length)
    throw invalidArgument(
      'overrides.imagePullSecret',
      'must not be given while members are on other clusters: passwords are not sent there',
    );
  const wanted = change(before);
  if (!isSameData([wanted.templateRef, wanted.overrides], [before.templateRef, before.overrides]))
    await requireRenderable(deps, wanted, { namespace: before.owner.namespace, members: here });
  const record = await changeEnv(deps.envs, before, async (env) => {
    requireMatch(ifMatch, wordRevisionOf(env));
    const changed = change(env);
    if (registries && registries.length > 0)
      // last, so that a refusal has no effect
      await deps.pullSecrets.keep(secretOwnerOf(before), registries);
    return isSameData(changed, env) ? env : changed;
  });
  if (registries?.length === 0) await deps.pullSecrets.forget(secretOwnerOf(before));
  return envViewOf(deps, record);
};

const secretOwnerOf = ({
  owner: { namespace },
  name,
  uid,
}: {
  readonly owner: Caller | Tenant;
  readonly name: string;
  readonly uid: string;
}): PullSecretOwner => ({ kind: 'env', namespace, name, uid });
