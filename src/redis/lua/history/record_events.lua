-- Records events of sandboxes. Stores only the newest events of each.
--
-- KEYS: history
-- ARGV: deadline, the maximum number of a sandbox's events, ms for which they are stored while it
-- runs, ms after its end, then for each event: sandbox, number and JSON
-- Returns: `ok`
-- Guarantees: may be repeated: an event with a known number is not recorded again.

--- @include "deadline"
--- @include "history_indexes"
--- @include "history_overhead"

for i = 5, #ARGV, 3 do
  local id, number, key = ARGV[i], ARGV[i + 1], KEYS[1] .. ':events:' .. ARGV[i]
  if redis.call('ZCOUNT', key, number, number) == 0 then
    redis.call('ZADD', key, number, number .. '|' .. ARGV[i + 2])
    redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[2])
    local group, ended =
      string.match(redis.call('HGET', base .. ':bodies', id) or '', '^(%d+)|%d+|(%d+)|')
    if ended and redis.call('HEXISTS', base .. ':charges', id) == 1 then
      local bytes = #number + #ARGV[i + 2] + EVENT_BYTES
      redis.call('HINCRBY', base .. ':charges', id, bytes)
      charge(redis.call('HGET', base .. ':names', group), bytes)
    end
    if ended then
      redis.call('PEXPIREAT', key, string.format('%d', ended + ARGV[4]))
    else
      redis.call('PEXPIRE', key, ARGV[3])
    end
  end
end
return {'ok'}
