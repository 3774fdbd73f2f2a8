/** Identifies the caller from a manager to a worker; only valid on a link. */
export const IDENTITY_HEADER = 'sandpool-fleet-identity';

/**
 * Makes a worker carry out a claim without the client's key once: `first ID`, and `again ID` if the
 * first answer was lost. Only valid on a link.
 */
export const CLAIM_KEY_HEADER = 'sandpool-fleet-claim-key';

/** See ToldClaim. Only valid on a link. */
export const CLAIM_TERMS_HEADER = 'sandpool-fleet-claim-terms';

/** The manager's key that issued a token, perhaps at another replica. */
export const FLEET_KEY_HEADER = 'sandpool-fleet-key';
