import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { Fault, ResourceObject } from '../api/resource.ts';

const TEAM_ANNOTATION = 'sandpool.dev/team';
const USER_ANNOTATION = 'sandpool.dev/user';

/** User of an object in a team's namespace that names no user. */
const DEFAULT_USER = 'default';
/** Maximum difference in ms between our clock and the API server's at an object's creation. */
export const CREATION_TOLERANCE_MS = 60_000;

/**
 * Identity that a daemon assigned to an object at its creation. `bornAs`: its `namespace/name` at
 * that time.
 */
export interface Born {
  readonly uid: string;
  readonly bornAs: string;
  readonly bornAt: string;
}

/** Returns whether `uid` was assigned to this object. A copy of it gets its own uid. */
export const matchesIdentity = (
  { metadata }: ResourceObject,
  { uid, bornAs, bornAt }: Born,
): boolean =>
  bornAs === `${metadata.namespace ?? ''}/${metadata.name}` &&
  (uid === metadata.uid ||
    (typeof bornAt === 'string' &&
      Math.abs(Date.parse(bornAt) - Date.parse(metadata.creationTimestamp)) <=
        CREATION_TOLERANCE_MS));

/**
 * Returns the owner of a hand-made object: the namespace's team, and the user in its annotation.
 */
export const ownerOf = (
  { metadata }: ResourceObject,
  teamOf: (namespace: string) => string | undefined,
): Tenant | Fault => {
  const namespace = metadata.namespace ?? '';
  const team = teamOf(namespace);
  if (team === undefined)
    return { reason: 'OwnerUnknown', message: `the namespace ${namespace} is no team's` };
  const { [TEAM_ANNOTATION]: named = team, [USER_ANNOTATION]: user = DEFAULT_USER } =
    metadata.annotations ?? {};
  // An object of another team would be unusable, and would have a quota of its own.
  if (named !== team)
    return {
      reason: 'OwnerInvalid',
      message: `${TEAM_ANNOTATION} must be ${team}, whose namespace this is`,
    };
  if (!isDnsLabel(user))
    return { reason: 'OwnerInvalid', message: `${USER_ANNOTATION} ${DNS_LABEL_FORM}` };
  return { namespace, team, user };
};
