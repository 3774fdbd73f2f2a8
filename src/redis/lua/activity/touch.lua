-- Records activity.
--
-- KEYS: marks
-- ARGV: deadline, then for each sandbox its id and the ms since its activity
-- Returns: `ok`
-- Guarantees: may be repeated; the latest activity of a sandbox wins.

--- @include "deadline"
--- @include "activity_marks"

since_of(KEYS[1])
for i = 2, #ARGV, 2 do mark(KEYS[1], ARGV[i], tonumber(ARGV[i + 1])) end
return {'ok'}
