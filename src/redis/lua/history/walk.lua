-- Takes one step of a walk through a level, newest claim first.
--
-- KEYS: history
-- ARGV: deadline, level, the last member of the previous step or '', the rank to begin at without
-- such a member, the earliest end time, the maximum number of entries to read, of matching entries
-- to skip, of entries to return, then the groups; all groups if none is given
-- Returns: `ok`, the number of entries read, the number of matches, the last member, then entries
-- of `:bodies`; `lost` if the last member of the previous step is gone
-- Guarantees: changes nothing.

--- @include "deadline"

local base, key, since = KEYS[1], KEYS[1] .. ARGV[2] .. ':claimed', tonumber(ARGV[5])
local most, skip, wanted = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local from = tonumber(ARGV[4])
if ARGV[3] ~= '' then
  local rank = redis.call('ZREVRANK', key, ARGV[3])
  if not rank then return {'lost'} end
  from = rank + 1
end
local groups = nil
for i = 9, #ARGV do groups = groups or {}; groups[ARGV[i]] = true end
local seen, matched, last, ids = 0, 0, '', {}
for _, member in ipairs(redis.call('ZREVRANGE', key, from, from + most - 1)) do
  seen, last = seen + 1, member
  local id, group, ended = string.match(member, '^(.*)|(%d+)|(%d+)$')
  if tonumber(ended) >= since and (not groups or groups[group]) then
    matched = matched + 1
    if matched > skip and #ids < wanted then ids[#ids + 1] = id end
    if #ids == wanted then break end
  end
end
local answer = {'ok', seen, matched, last}
for _, id in ipairs(ids) do
  local entry = redis.call('HGET', base .. ':bodies', id)
  if entry then answer[#answer + 1] = entry end
end
return answer
