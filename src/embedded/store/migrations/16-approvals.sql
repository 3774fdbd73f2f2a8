-- Requests that wait for a person, or waited.
CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;

CREATE TRIGGER approvals_revision_on_insert AFTER INSERT ON approvals BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER approvals_revision_on_update AFTER UPDATE ON approvals BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
