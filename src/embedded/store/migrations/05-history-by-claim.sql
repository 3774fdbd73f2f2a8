-- How many of a group were claimed in each 2^20, 2^14 and 2^8 ms: by these a page far down a list
-- is found without a walk.
CREATE TABLE history_claims (
  group_id INTEGER NOT NULL, bits INTEGER NOT NULL, bucket INTEGER NOT NULL, finished INTEGER NOT
      NULL,
  PRIMARY KEY (group_id, bits, bucket)
) STRICT, WITHOUT ROWID;
INSERT INTO history_claims SELECT group_id, bits, claimed_at >> bits, COUNT(*)
  FROM history CROSS JOIN (SELECT 20 AS bits UNION ALL SELECT 14 UNION ALL SELECT 8) GROUP BY 1, 2,
      3;
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
