import type { EnvRecord } from '../../model/envs/env.ts';
import type { Caller } from '../../model/tenant.ts';
import { memberIn } from '../../actors/env/commands/find-env.ts';
import type { Operations } from '../../services/operations.ts';
import type { ResolvedName } from './resolved-name.ts';
import type { Route } from './route.ts';

type SubjectOperations = Pick<
  Operations,
  'getPool' | 'getEnv' | 'getTemplate' | 'getSandbox' | 'getApproval' | 'getApiKey' | 'keyIdOf'
>;

/**
 * An approval can't apply to a later resource with the same name. Undefined if names are never
 * reused. Rejects as the operation would.
 */
export const heldSubject =
  (operations: SubjectOperations) =>
  async (
    row: Route,
    { name = '', namespace, member, id = '' }: ResolvedName,
    caller: Caller,
  ): Promise<string | undefined> => {
    if (!row.params) return undefined;
    const there: Caller = { ...caller, namespace };
    const kind = row.path.split('/').find((part) => KINDS.has(part));
    switch (kind) {
      case 'sandboxpools':
        return (await operations.getPool(there, name)).record.uid;
      case 'envs':
        return uidIn((await operations.getEnv(there, name)).record, member);
      case 'sandbox-templates':
        return String((await operations.getTemplate(name)).record.createdAt);
      case 'api-keys':
        if (row.path.startsWith('/admin'))
          return await operations.keyIdOf({ namespace, shortName: name });
        await operations.getApiKey(there, name);
        return undefined;
      case 'sandboxes':
        await operations.getSandbox(caller, id);
        return undefined;
      case 'approvals':
        await operations.getApproval(caller, id);
        return undefined;
      default:
        return undefined;
    }
  };

/** A member gets a uid with its pool. */
const uidIn = (env: EnvRecord, member: string | undefined): string =>
  member === undefined ? env.uid : `${env.uid} ${memberIn(env, member).createdAt}`;

const KINDS: ReadonlySet<string> = new Set([
  'sandboxpools',
  'envs',
  'sandbox-templates',
  'api-keys',
  'sandboxes',
  'approvals',
]);
