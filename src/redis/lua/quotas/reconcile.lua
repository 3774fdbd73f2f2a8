-- Settles names: the record's amount replaces reservations that nobody can withdraw any more.
--
-- KEYS: usage, unsettled
-- ARGV: deadline, then for each name: name, version, amount and the revision of its record; the
-- version is '' for a missing name
-- Returns: `ok`
-- Guarantees: may be repeated; does not change a name that was reserved or confirmed after its
-- version.

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
