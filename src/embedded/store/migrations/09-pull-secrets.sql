-- Registry passwords of pools, sealed.
CREATE TABLE pull_secrets (pool_uid TEXT NOT NULL PRIMARY KEY, sealed TEXT NOT NULL) STRICT,
    WITHOUT ROWID;
CREATE TRIGGER pull_secrets_forgotten AFTER DELETE ON pools BEGIN
  DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
END;
