-- Since when a claimed instance is paused; null: it runs.
ALTER TABLE instances ADD COLUMN paused_at INTEGER;
