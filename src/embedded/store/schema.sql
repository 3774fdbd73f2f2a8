-- The version of the daemon that opened the file last.
CREATE TABLE writer (id INTEGER PRIMARY KEY CHECK (id = 1), version TEXT NOT NULL) STRICT;

-- claim_terms: rarely set fields of a claim, as JSON (see ClaimTerms). paused_at: NULL while the
-- sandbox runs. ends_at: NULL if the claim has no expiry. mark: hashes of the Idempotency-Key and
-- the body of the claiming request.
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
  mark TEXT, claim_terms TEXT, paused_at INTEGER, ends_at INTEGER,
  CHECK ((state = 'idle') = (claimed_at IS NULL)),
  CHECK ((state = 'ending') = (end_reason IS NOT NULL))
) STRICT;

-- Revisions of all records come from one counter, so a name that is deleted and created again never
-- repeats a revision.
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

-- One row per owner and pool.
CREATE TABLE history_groups (
  group_id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL, team TEXT NOT NULL, user TEXT NOT NULL, pool_name TEXT NOT NULL,
  UNIQUE (namespace, team, user, pool_name)
) STRICT;

-- Number of a group's sandboxes that ended in each ten minutes. A total is a sum of these, plus a
-- count of the rows of less than ten minutes.
CREATE TABLE history_counts (
  group_id INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT NULL,
  PRIMARY KEY (group_id, bucket)
) STRICT, WITHOUT ROWID;

-- owner is namespace/team/user. The indexes by claim contain all columns of a filter, so a walk
-- reads no rows.
CREATE TABLE history (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  group_id INTEGER NOT NULL,
  owner TEXT NOT NULL,
  claimed_at INTEGER NOT NULL,
  terminated_at INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE INDEX history_by_claim ON history (claimed_at, id, terminated_at, group_id);
CREATE INDEX history_of_owner_by_claim ON history (owner, claimed_at, id, terminated_at, group_id);
CREATE INDEX history_of_group_by_end ON history (group_id, terminated_at);
CREATE INDEX history_by_end ON history (terminated_at);

CREATE TRIGGER history_counted AFTER INSERT ON history BEGIN
  INSERT INTO history_counts VALUES (NEW.group_id, NEW.terminated_at / 600000, 1)
    ON CONFLICT DO UPDATE SET finished = finished + 1;
END;
CREATE TRIGGER history_uncounted AFTER DELETE ON history BEGIN
  UPDATE history_counts SET finished = finished - 1 WHERE group_id = OLD.group_id AND bucket =
      OLD.terminated_at / 600000;
  DELETE FROM history_counts WHERE group_id = OLD.group_id AND bucket = OLD.terminated_at / 600000
      AND finished = 0;
  DELETE FROM history_groups WHERE group_id = OLD.group_id
    AND NOT EXISTS (SELECT 1 FROM history_counts WHERE group_id = OLD.group_id);
END;

-- Inserts go through this view. It finds or creates the group, and keeps the first record of an id.
CREATE VIEW finished_sandboxes AS
  SELECT h.id, g.namespace, g.team, g.user, g.pool_name, h.claimed_at, h.terminated_at, h.body
  FROM history h JOIN history_groups g USING (group_id);

CREATE TRIGGER finished_sandboxes_insert INSTEAD OF INSERT ON finished_sandboxes
WHEN NOT EXISTS (SELECT 1 FROM history WHERE id = NEW.id) BEGIN
  INSERT INTO history_groups (namespace, team, user, pool_name) VALUES (NEW.namespace, NEW.team,
      NEW.user, NEW.pool_name)
    ON CONFLICT DO NOTHING;
  INSERT INTO history (id, group_id, owner, claimed_at, terminated_at, body)
    SELECT NEW.id, group_id, NEW.namespace || '/' || NEW.team || '/' || NEW.user, NEW.claimed_at,
        NEW.terminated_at, NEW.body
    FROM history_groups
    WHERE namespace = NEW.namespace AND team = NEW.team AND user = NEW.user AND pool_name =
        NEW.pool_name;
END;

-- Answers to requests with an Idempotency-Key, or the places that they were forwarded to. key and
-- body_hash are hashes; answers with a secret are sealed.
CREATE TABLE kept_answers (
  seq INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  principal TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  answer TEXT,
  place TEXT,
  CHECK ((answer IS NULL) <> (place IS NULL))
) STRICT;

-- Events of claimed sandboxes beyond record and history: the newest 50 of each sandbox, until its
-- history is deleted.
CREATE TABLE sandbox_events (
  sandbox_id TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (sandbox_id, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER sandbox_events_bounded AFTER INSERT ON sandbox_events
WHEN (SELECT COUNT(*) FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id) > 50 BEGIN
  DELETE FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id
    AND id = (SELECT MIN(id) FROM sandbox_events WHERE sandbox_id = NEW.sandbox_id);
END;
CREATE TRIGGER sandbox_events_forgotten AFTER DELETE ON history BEGIN
  DELETE FROM sandbox_events WHERE sandbox_id = OLD.id;
END;

-- Number of a group's sandboxes that were claimed in each 2^20, 2^14 and 2^8 ms. These counts find
-- a late page of a list without a walk.
CREATE TABLE history_claims (
  group_id INTEGER NOT NULL, bits INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT
      NULL,
  PRIMARY KEY (group_id, bits, bucket)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER history_claim_counted AFTER INSERT ON history BEGIN
  INSERT INTO history_claims SELECT NEW.group_id, column1, NEW.claimed_at >> column1, 1 FROM
      (VALUES (20), (14), (8)) WHERE true
    ON CONFLICT DO UPDATE SET finished = finished + 1;
END;
CREATE TRIGGER history_claim_uncounted AFTER DELETE ON history BEGIN
  UPDATE history_claims SET finished = finished - 1
    WHERE group_id = OLD.group_id AND (bits, bucket) IN (VALUES (20, OLD.claimed_at >> 20), (14,
        OLD.claimed_at >> 14), (8, OLD.claimed_at >> 8));
  DELETE FROM history_claims
    WHERE group_id = OLD.group_id AND (bits, bucket) IN (VALUES (20, OLD.claimed_at >> 20), (14,
        OLD.claimed_at >> 14), (8, OLD.claimed_at >> 8))
    AND finished = 0;
END;

-- Limits of a user that differ from the configuration. tenant is namespace/team/user.
CREATE TABLE user_quotas (
  tenant TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;

CREATE TRIGGER user_quotas_revision_on_insert AFTER INSERT ON user_quotas BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER user_quotas_revision_on_update AFTER UPDATE ON user_quotas BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;

-- Number of finished sandboxes of each namespace.
CREATE TABLE history_namespaces (
  namespace TEXT PRIMARY KEY, finished INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER history_namespace_counted AFTER INSERT ON history BEGIN
  INSERT INTO history_namespaces VALUES (substr(NEW.owner, 1, instr(NEW.owner, '/') - 1), 1)
    ON CONFLICT DO UPDATE SET finished = finished + 1;
END;
CREATE TRIGGER history_namespace_uncounted AFTER DELETE ON history BEGIN
  UPDATE history_namespaces SET finished = finished - 1 WHERE namespace = substr(OLD.owner, 1,
      instr(OLD.owner, '/') - 1);
  DELETE FROM history_namespaces WHERE namespace = substr(OLD.owner, 1, instr(OLD.owner, '/') - 1)
      AND finished = 0;
END;

-- Registry passwords of pools and envs, sealed. pool_uid is the uid of either.
CREATE TABLE pull_secrets (
  pool_uid TEXT NOT NULL PRIMARY KEY, sealed TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER pull_secrets_forgotten AFTER DELETE ON pools BEGIN
  DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
END;

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
CREATE TRIGGER pull_secrets_of_envs_forgotten AFTER DELETE ON envs BEGIN
  DELETE FROM pull_secrets WHERE pool_uid = OLD.uid;
END;

-- Decisions of autoscaling groups: the newest 100 of each, while its env exists.
CREATE TABLE scaling_decisions (
  env_uid TEXT NOT NULL, group_name TEXT NOT NULL, id INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (env_uid, group_name, id)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER scaling_decisions_bounded AFTER INSERT ON scaling_decisions BEGIN
  DELETE FROM scaling_decisions WHERE env_uid = NEW.env_uid AND group_name = NEW.group_name AND id
      <= (
    SELECT id FROM scaling_decisions WHERE env_uid = NEW.env_uid AND group_name = NEW.group_name
        ORDER BY id DESC LIMIT 1 OFFSET 100);
END;
CREATE TRIGGER scaling_decisions_forgotten AFTER DELETE ON envs BEGIN
  DELETE FROM scaling_decisions WHERE env_uid = OLD.uid;
END;

-- Approximate bytes of an owner's finished sandboxes and events: their text, and a constant for row
-- and indexes.
CREATE TABLE history_bytes (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE INDEX history_of_owner_by_end ON history (owner, terminated_at);

CREATE TRIGGER history_bytes_counted AFTER INSERT ON history BEGIN
  INSERT INTO history_bytes VALUES (NEW.owner, length(CAST(NEW.body AS BLOB)) + 400)
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER history_bytes_uncounted AFTER DELETE ON history BEGIN
  UPDATE history_bytes SET bytes = bytes - (length(CAST(OLD.body AS BLOB)) + 400)
    WHERE owner = OLD.owner;
  DELETE FROM history_bytes WHERE owner = OLD.owner AND bytes <= 0;
END;
CREATE TRIGGER sandbox_events_bytes_counted AFTER INSERT ON sandbox_events BEGIN
  INSERT INTO history_bytes VALUES (
    (NEW.body ->> '$.owner.namespace') || '/' || (NEW.body ->> '$.owner.team')
      || '/' || (NEW.body ->> '$.owner.user'),
    length(CAST(NEW.body AS BLOB)) + 100
  ) ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER sandbox_events_bytes_uncounted AFTER DELETE ON sandbox_events BEGIN
  UPDATE history_bytes SET bytes = bytes - (length(CAST(OLD.body AS BLOB)) + 100)
    WHERE owner = (OLD.body ->> '$.owner.namespace') || '/' || (OLD.body ->> '$.owner.team')
      || '/' || (OLD.body ->> '$.owner.user');
  DELETE FROM history_bytes
    WHERE owner = (OLD.body ->> '$.owner.namespace') || '/' || (OLD.body ->> '$.owner.team')
      || '/' || (OLD.body ->> '$.owner.user') AND bytes <= 0;
END;

-- Events of pools: the newest 50 of each name, and for each owner only those of the 100 pools with
-- the newest events. ended_at: time of the deletion of the pool of that name; NULL while it exists.
CREATE TABLE pool_events (
  namespace TEXT NOT NULL, pool TEXT NOT NULL, id INTEGER NOT NULL,
  owner TEXT NOT NULL, ended_at INTEGER, body TEXT NOT NULL,
  PRIMARY KEY (namespace, pool, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX pool_events_by_owner ON pool_events (namespace, owner, pool, id);
CREATE INDEX pool_events_by_end ON pool_events (ended_at) WHERE ended_at IS NOT NULL;

CREATE TRIGGER pool_events_bounded AFTER INSERT ON pool_events BEGIN
  DELETE FROM pool_events WHERE namespace = NEW.namespace AND pool = NEW.pool AND id <= (
    SELECT id FROM pool_events WHERE namespace = NEW.namespace AND pool = NEW.pool ORDER BY id DESC
        LIMIT 1 OFFSET 50);
END;
CREATE TRIGGER pools_with_events_bounded AFTER INSERT ON pool_events
WHEN (SELECT COUNT(*) FROM pool_events WHERE namespace = NEW.namespace AND pool = NEW.pool) = 1
    BEGIN
  DELETE FROM pool_events WHERE namespace = NEW.namespace AND owner = NEW.owner AND pool IN (
    SELECT pool FROM pool_events WHERE namespace = NEW.namespace AND owner = NEW.owner
    GROUP BY pool ORDER BY MAX(id) DESC LIMIT -1 OFFSET 100);
END;
CREATE TRIGGER pool_events_ended AFTER DELETE ON pools BEGIN
  UPDATE pool_events SET ended_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
    WHERE namespace = OLD.namespace AND pool = OLD.name;
END;
CREATE TRIGGER pool_events_of_the_living AFTER INSERT ON pools BEGIN
  UPDATE pool_events SET ended_at = NULL WHERE namespace = NEW.namespace AND pool = NEW.name;
END;

-- Requests that wait, or have waited, for a person's approval.
CREATE TABLE approvals (
  id TEXT NOT NULL PRIMARY KEY, revision INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;

CREATE TRIGGER approvals_revision_on_insert AFTER INSERT ON approvals BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;
CREATE TRIGGER approvals_revision_on_update AFTER UPDATE ON approvals BEGIN
  UPDATE record_revision SET last = NEW.revision WHERE last < NEW.revision;
END;

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

-- Webhooks that a receiver did not accept. receiver is a hash of its address; body is the letter as
-- JSON.
CREATE TABLE dead_letters (
  receiver TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (receiver, id)
) STRICT, WITHOUT ROWID;
