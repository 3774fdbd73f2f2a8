-- About what finished sandboxes and events take of each owner: their text, and so much for row and
-- indexes.
CREATE TABLE history_bytes (owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX history_of_owner_by_end ON history (owner, terminated_at);
INSERT INTO history_bytes SELECT owner, SUM(bytes) FROM (
  SELECT owner AS owner, length(CAST(body AS BLOB)) + 400 AS bytes FROM history
  UNION ALL
  SELECT (body ->> '$.owner.namespace') || '/' || (body ->> '$.owner.team')
    || '/' || (body ->> '$.owner.user') AS owner,
    length(CAST(body AS BLOB)) + 100 AS bytes FROM sandbox_events
) GROUP BY owner;

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
