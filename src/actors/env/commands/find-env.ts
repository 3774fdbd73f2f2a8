import type { EnvMirror } from '../../runtime/record-mirror.ts';
import { RecordConflict } from '../../../contracts/sandbox-driver.ts';
import type { EnvMember, EnvRecord } from '../../../model/envs/env.ts';
import {
  envBeingDeleted,
  envNotFound,
  memberNotFound,
  notOwnersChange,
  unavailable,
} from '../../../model/refusals.ts';
import { mayUse, sameTenant, type Caller } from '../../../model/tenant.ts';

/** Refuses as `findUsableEnv`, and with FORBIDDEN if the env is only shared with the caller. */
export const findEnv = async (
  envs: EnvMirror,
  caller: Caller,
  name: string,
): Promise<EnvRecord> => {
  const env = await findUsableEnv(envs, caller, name);
  if (!sameTenant(env.owner, caller) && caller.role !== 'admin') throw notOwnersChange('env');
  return env;
};

/**
 * Own or shared, after an uncached read. The refusal is the same for unknown and other tenants'
 * envs.
 */
export const findUsableEnv = async (
  envs: EnvMirror,
  caller: Caller,
  name: string,
): Promise<EnvRecord> => {
  await envs.refresh(`${caller.namespace}/${name}`);
  const env = envs.named(caller.namespace, name);
  if (!env || !(mayUse(env, caller) || caller.role === 'admin')) throw envNotFound();
  return env;
};

export const memberIn = (env: EnvRecord, name: string): EnvMember => {
  const member = env.members.find((each) => each.name === name);
  if (!member) throw memberNotFound();
  return member;
};

/** Refuses with CONFLICT, ENV_NOT_FOUND, or UNAVAILABLE after repeated conflicts. */
export const changeEnv = async (
  envs: EnvMirror,
  { uid }: EnvRecord,
  change: (env: EnvRecord) => EnvRecord | Promise<EnvRecord>,
): Promise<EnvRecord> => {
  try {
    const record = await envs.change(uid, (current) => {
      if (current.deleting !== false) throw envBeingDeleted();
      return change(current);
    });
    if (!record) throw envNotFound();
    return record;
  } catch (error) {
    throw error instanceof RecordConflict
      ? unavailable('the env was changed by another request; try again')
      : error;
  }
};

export const withMember = (
  env: EnvRecord,
  name: string,
  change: (member: EnvMember) => EnvMember,
): EnvRecord => ({
  ...env,
  members: env.members.map((member) => (member.name === name ? change(member) : member)),
});

export const endingMember = (env: EnvRecord, name: string, force: boolean): EnvRecord =>
  withMember(env, name, (member) => ({
    ...member,
    deleting: force || member.deleting === 'force' ? 'force' : 'keep-running',
  }));
