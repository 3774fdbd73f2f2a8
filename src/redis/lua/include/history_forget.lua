--- @include "history_indexes"

-- Deletes finished sandboxes with all data under their ids. Returns their number.
local function forget(ids)
  for _, id in ipairs(ids) do
    local group, ended =
      string.match(redis.call('HGET', base .. ':bodies', id) or '', '^(%d+)|%d+|(%d+)|')
    local name = group and redis.call('HGET', base .. ':names', group)
    local bytes = redis.call('HGET', base .. ':charges', id)
    if name and bytes then charge(name, -bytes) end
    if name then
      local levels = levels_of(name, group)
      for _, level in ipairs(levels) do
        redis.call('ZREM', level .. ':claimed', id .. '|' .. group .. '|' .. ended)
        redis.call('ZREM', level .. ':ended', id)
      end
      if redis.call('EXISTS', levels[4] .. ':ended') == 0 then
        redis.call('HDEL', base .. ':groups', name)
        redis.call('HDEL', base .. ':names', group)
      end
    end
    redis.call('ZREM', base .. ':all:ended', id)
    redis.call('HDEL', base .. ':bodies', id)
    redis.call('HDEL', base .. ':charges', id)
    redis.call('DEL', base .. ':events:' .. id)
  end
  return #ids
end
