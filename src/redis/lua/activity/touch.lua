-- Notes activity.
--
-- KEYS: marks
-- ARGV: deadline, then sandbox and how many ms ago in turn
-- Returns: `ok`
-- Guarantees: may be repeated; the latest activity of a sandbox stands.

--- @include "deadline"
--- @include "activity_marks"

since_of(KEYS[1])
for i = 2, #ARGV, 2 do mark(KEYS[1], ARGV[i], tonumber(ARGV[i + 1])) end
return {'ok'}
