-- What autoscaling groups decided: of each the newest 100, as long as its env.
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
