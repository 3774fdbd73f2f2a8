/** Carries who asks from a manager to a worker; worth nothing but on a link. */
export const IDENTITY_HEADER = 'sandpool-fleet-identity';
