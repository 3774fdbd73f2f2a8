-- What else a claim says, as JSON; see ClaimTerms.
ALTER TABLE instances ADD COLUMN claim_terms TEXT;
