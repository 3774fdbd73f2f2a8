-- Settles names: what the record says replaces their reservations, which nobody can withdraw any
-- more.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, then name, version, amount and the revision of its record in turn; the version ''
-- is that of a name that is not there
-- Returns: `ok`
-- Guarantees: may be repeated; a name that was reserved or confirmed since its version is left as
-- it is.

--- @include "deadline"
--- @include "usage_entry"

for i = 2, #ARGV, 4 do
  local name, amount, entry = ARGV[i], tonumber(ARGV[i + 2]), entry_of(KEYS[1], ARGV[i])
  if (entry and entry.version or '') == ARGV[i + 1] then
    entry = entry or { amount = 0 }
    entry.open, entry.settled, entry.revision = {}, amount, amount > 0 and ARGV[i + 3] or ''
    entry.version = redis.call('HINCRBY', KEYS[1], ':version', 1)
    put(KEYS[1], KEYS[2], name, entry)
  end
end
return {'ok'}
