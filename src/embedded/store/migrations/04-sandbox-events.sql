-- What happened to claimed sandboxes, beyond what record and history show: the newest 50 of each,
-- until its history goes.
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
