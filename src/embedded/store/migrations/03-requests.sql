-- The request that claimed the instance, where it carried an Idempotency-Key: hashes of the key
-- and of the body.
ALTER TABLE instances ADD COLUMN mark TEXT;
-- Answers to requests with an Idempotency-Key; key and body_hash are hashes, answers with a secret
-- are sealed.
CREATE TABLE kept_answers (
  seq INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  principal TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  answer TEXT NOT NULL
) STRICT;
