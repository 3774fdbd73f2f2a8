-- History lies under one prefix, KEYS[1], with one hash tag. `:bodies` has by id
-- `group|claimed|ended|JSON`; `:groups` numbers each owner with a pool, `namespace/team/user/pool`,
-- and `:names` has them by number. There are two sorted sets for all, for each namespace, each
-- owner and each group: `:claimed` of `id|group|ended` by the time of the claim, from which pages
-- are read, and `:ended` of ids by the time of the end, which counts them. `:charges` has by id
-- what counts in bytes for its owner, `:shares` orders owners by the sum of theirs, and `:bytes`
-- has the sum of all. What a version without these recorded counts nothing.
local base = KEYS[1]

-- Returns the prefixes of the sorted sets that an entry is in, that of its group last.
local function levels_of(name, group)
  local namespace, team, user = string.match(name, '^([^/]*)/([^/]*)/([^/]*)/')
  return {
    base .. ':all',
    base .. ':namespace:' .. namespace,
    base .. ':owner:' .. namespace .. '/' .. team .. '/' .. user,
    base .. ':group:' .. group
  }
end

-- Adds bytes to what an owner, and all, have.
local function charge(name, bytes)
  local owner = string.match(name, '^[^/]*/[^/]*/[^/]*')
  if tonumber(redis.call('ZINCRBY', base .. ':shares', bytes, owner)) <= 0 then
    redis.call('ZREM', base .. ':shares', owner)
  end
  if redis.call('INCRBY', base .. ':bytes', string.format('%d', bytes)) <= 0 then
    redis.call('DEL', base .. ':bytes')
  end
end
