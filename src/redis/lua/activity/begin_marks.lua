-- Begins the marks of a bucket if they are missing.
--
-- KEYS: marks
-- ARGV: deadline
-- Returns: `ok`
-- Guarantees: may be repeated.

--- @include "deadline"
--- @include "activity_marks"

since_of(KEYS[1])
return {'ok'}
