import { DNS_LABEL_FORM, isDnsLabel } from '../../model/identifiers.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { Fault, ResourceObject } from '../api/resource.ts';

const TEAM_ANNOTATION = 'sandpool.dev/team';
const USER_ANNOTATION = 'sandpool.dev/user';

/** The user of an object in a team's namespace that names none. */
const DEFAULT_USER = 'default';
/**
 * The most that our clock and the API server's may differ at the birth of an object. Milliseconds.
 */
export const CREATION_TOLERANCE_MS = 60_000;

/** Describes what a daemon gave an object at its birth. `bornAs`: its `namespace/name` then. */
export interface Born {
  readonly uid: string;
  readonly bornAs: string;
  readonly bornAt: string;
}

/**
 * Whether the object is the one that `uid` was given to, and not a copy of it, which gets a uid of
 * its own.
 */
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
 * Reads who owns an object made by hand: the namespace's team, and the user that its annotation
 * names.
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
  // Another team's would be nobody's to use, and have a quota of its own.
  if (named !== team)
    return {
      reason: 'OwnerInvalid',
      message: `${TEAM_ANNOTATION} must be ${team}, whose namespace this is`,
    };
  if (!isDnsLabel(user))
    return { reason: 'OwnerInvalid', message: `${USER_ANNOTATION} ${DNS_LABEL_FORM}` };
  return { namespace, team, user };
};
