import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { Fault, ResourceObject } from '../api/resource.ts';

const TEAM_ANNOTATION = 'sandpool.dev/team';
const USER_ANNOTATION = 'sandpool.dev/user';

const DEFAULT_USER = 'default';
/** Tolerated difference to the API server's clock, in ms. */
export const CREATION_TOLERANCE_MS = 60_000;

/** `bornAs`: its `namespace/name` when the uid was assigned. */
export interface Born {
  readonly uid: string;
  readonly bornAs: string;
  readonly bornAt: string;
}

/** A copy of the object gets its own uid. */
export const matchesIdentity = (
  { metadata }: ResourceObject,
  { uid, bornAs, bornAt }: Born,
): boolean =>
  bornAs === `${metadata.namespace ?? ''}/${metadata.name}` &&
  (uid === metadata.uid ||
    (typeof bornAt === 'string' &&
      Math.abs(Date.parse(bornAt) - Date.parse(metadata.creationTimestamp)) <=
        CREATION_TOLERANCE_MS));

/** The namespace's team, and the user in the annotation. */
export const ownerOf = (
  { metadata }: ResourceObject,
  teamOf: (namespace: string) => string | undefined,
): Tenant | Fault => {
  const namespace = metadata.namespace ?? '';
  const team = teamOf(namespace);
  if (team === undefined)
    return {
      reason: 'OwnerUnknown',
      message: `the namespace ${namespace} does not belong to a team`,
    };
  const { [TEAM_ANNOTATION]: named = team, [USER_ANNOTATION]: user = DEFAULT_USER } =
    metadata.annotations ?? {};
  // An object of another team would be unusable, and would have a quota of its own.
  if (named !== team)
    return {
      reason: 'OwnerInvalid',
      message: `${TEAM_ANNOTATION} must be ${team}, which owns this namespace`,
    };
  if (!isDnsLabel(user))
    return { reason: 'OwnerInvalid', message: `${USER_ANNOTATION} ${DNS_LABEL_FORM}` };
  return { namespace, team, user };
};
