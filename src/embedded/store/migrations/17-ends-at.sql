-- When a claimed instance ends, whatever it does; null: its claim names no such moment.
ALTER TABLE instances ADD COLUMN ends_at INTEGER;
