CREATE TABLE instances (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  revision INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('idle', 'claimed', 'ending')),
  owner_namespace TEXT, owner_team TEXT, owner_user TEXT,
  claimed_at INTEGER, idle_timeout_ms INTEGER, max_lifetime_ms INTEGER,
  end_reason TEXT, exit_code INTEGER,
  birth TEXT NOT NULL,
  definition TEXT NOT NULL,
  CHECK ((state = 'idle') = (claimed_at IS NULL)),
  CHECK ((state = 'ending') = (end_reason IS NOT NULL))
) STRICT;

-- Revisions of all records come from one counter, so that a name that is deleted and made again
-- repeats none.
CREATE TABLE record_revision (id INTEGER PRIMARY KEY CHECK (id = 1), last INTEGER NOT NULL) STRICT;
INSERT INTO record_revision VALUES (1, 0);

CREATE TABLE templates (
  name TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE TABLE pools (
  uid TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
  namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
  UNIQUE (namespace, name)
) STRICT;
CREATE TABLE api_keys (
  key_id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL,
  namespace TEXT NOT NULL, short_name TEXT NOT NULL, body TEXT NOT NULL,
  UNIQUE (namespace, short_name)
) STRICT;

CREATE TRIGGER templates_revision_on_insert AFTER INSERT ON templates BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER templates_revision_on_update AFTER UPDATE ON templates BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER pools_revision_on_insert AFTER INSERT ON pools BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER pools_revision_on_update AFTER UPDATE ON pools BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER api_keys_revision_on_insert AFTER INSERT ON api_keys BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER api_keys_revision_on_update AFTER UPDATE ON api_keys BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
