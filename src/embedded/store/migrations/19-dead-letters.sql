-- Messages that a receiver of webhooks did not take: `receiver` is a hash of its address, body the
-- letter as JSON.
CREATE TABLE dead_letters (
  receiver TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY (receiver, id)
) STRICT, WITHOUT ROWID;
