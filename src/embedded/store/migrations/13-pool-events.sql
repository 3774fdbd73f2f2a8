-- What happened to pools, of each name the newest 50, of each owner those of the 100 pools that
-- something happened to last.
-- ended_at: when the pool of that name went; NULL while there is one.
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
