-- What a user may have, where it is not what the configuration says; tenant is namespace/team/user.
CREATE TABLE user_quotas (
  tenant TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;

CREATE TRIGGER user_quotas_revision_on_insert AFTER INSERT ON user_quotas BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER user_quotas_revision_on_update AFTER UPDATE ON user_quotas BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
