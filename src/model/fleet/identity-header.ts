/** Carries who asks from a manager to a worker; worth nothing but on a link. */
export const IDENTITY_HEADER = 'sandpool-fleet-identity';

/**
 * Carries a key that a manager made for a claim whose client sent none, by which the worker carries
 * it out once: `first ID`, and `again ID` where the answer to that was lost. Worth nothing but on
 * a link.
 */
export const CLAIM_KEY_HEADER = 'sandpool-fleet-claim-key';

/** Carries what a manager says of a claim besides: see ToldClaim. Worth nothing but on a link. */
export const CLAIM_TERMS_HEADER = 'sandpool-fleet-claim-terms';

/**
 * Names, in a worker's answer to whoever brings a token, the key of a manager that it was made by:
 * the manager's replica need not be the one that it was made over.
 */
export const FLEET_KEY_HEADER = 'sandpool-fleet-key';
