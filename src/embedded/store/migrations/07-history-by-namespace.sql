-- How many of a namespace there are. owner begins with the namespace.
CREATE TABLE history_namespaces (namespace TEXT PRIMARY KEY, finished INTEGER NOT NULL) STRICT,
    WITHOUT ROWID;
INSERT INTO history_namespaces SELECT namespace, SUM(finished) FROM history_groups JOIN
    history_counts USING (group_id) GROUP BY namespace;
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
