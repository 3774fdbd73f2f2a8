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

/**
 * Finds the caller's env of that name to change it. Refuses as `findUsableEnv`, and with FORBIDDEN
 * where it is only shared with the caller.
 */
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
 * Finds the caller's env of that name, or one that is shared with the caller, as it stands in the
 * store; whether it is unknown or another's, the refusal is the same.
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

/**
 * Writes a change of an env that is not to go. Refuses with CONFLICT, ENV_NOT_FOUND, or UNAVAILABLE
 * where others write it all the time.
 */
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

/** The env with one member as `change` makes it. */
export const withMember = (
  env: EnvRecord,
  name: string,
  change: (member: EnvMember) => EnvMember,
): EnvRecord => ({
  ...env,
  members: env.members.map((member) => (member.name === name ? change(member) : member)),
});

/** The env with one member that is to go. */
export const endingMember = (env: EnvRecord, name: string, force: boolean): EnvRecord =>
  withMember(env, name, (member) => ({
    ...member,
    deleting: force || member.deleting === 'force' ? 'force' : 'keep-running',
  }));
