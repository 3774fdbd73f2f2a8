-- One row per owner and pool.
CREATE TABLE history_groups (
  group_id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL, team TEXT NOT NULL, user TEXT NOT NULL, pool_name TEXT NOT NULL,
  UNIQUE (namespace, team, user, pool_name)
) STRICT;
-- How many of a group ended in each ten minutes: totals are sums over these, with less than ten
-- minutes counted.
CREATE TABLE history_counts (
  group_id INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT NULL,
  PRIMARY KEY (group_id, bucket)
) STRICT, WITHOUT ROWID;
-- owner is namespace/team/user. The indexes by claim hold all that a filter asks, so that a walk
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

-- Written through this view: finds or makes the group, and keeps the first record of an id.
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
