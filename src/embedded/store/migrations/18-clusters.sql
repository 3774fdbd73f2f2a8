-- Worker clusters of a manager: their keys, and hashes of tokens to join with.
CREATE TABLE clusters (
  cluster_id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;

CREATE TRIGGER clusters_revision_on_insert AFTER INSERT ON clusters BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER clusters_revision_on_update AFTER UPDATE ON clusters BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
