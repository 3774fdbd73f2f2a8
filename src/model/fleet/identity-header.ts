/** Identifies the caller from a manager to a worker; only valid on a link. */
export const IDENTITY_HEADER = 'sandpool-fleet-identity';

/**
 * A manager's key for a claim whose client sent none, so that the worker carries out the claim
 * once: `first ID`, and `again ID` if the first answer was lost. Only valid on a link.
 */
export const CLAIM_KEY_HEADER = 'sandpool-fleet-claim-key';

/** Further terms of a claim from a manager: see ToldClaim. Only valid on a link. */
export const CLAIM_TERMS_HEADER = 'sandpool-fleet-claim-terms';

/**
 * In a worker's answer to a token's bearer: the manager's key that issued the token. The manager's
 * replica here need not be the issuing replica.
 */
export const FLEET_KEY_HEADER = 'sandpool-fleet-key';
