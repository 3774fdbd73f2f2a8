-- Reads all sessions of the console.
--
-- KEYS: sessions
-- ARGV: deadline
-- Returns: `ok` and each session as JSON
-- Guarantees: leaves out ended sessions.

--- @include "deadline"
--- @include "console_sessions"

local all = {'ok'}
each_session(function(id, entry) table.insert(all, shown(id, entry)) end)
return all
