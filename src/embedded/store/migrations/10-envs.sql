CREATE TABLE envs (
  uid TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
  namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
  UNIQUE (namespace, name)
) STRICT;

CREATE TRIGGER envs_revision_on_insert AFTER INSERT ON envs BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER envs_revision_on_update AFTER UPDATE ON envs BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
-- Registry passwords are an env's too: pool_uid is the uid of either.
CREATE TRIGGER pull_secrets_of_envs_forgotten AFTER DELETE ON envs BEGIN
  DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
END;
