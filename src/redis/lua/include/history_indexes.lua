-- All keys of the history have the prefix KEYS[1] and one hash tag. `:bodies` maps an id to
-- `group|claimed|ended|JSON`. `:groups` maps an owner and pool, `namespace/team/user/pool`, to a
-- group number, and `:names` maps it back. All, each namespace, each owner and each group have two
-- sorted sets: `:claimed` holds `id|group|ended` by claim time, for reading pages, and `:ended`
-- holds ids by end time, for counting. `:charges` maps an id to its bytes, `:shares` orders owners
-- by their sum, and `:bytes` is the total. Entries of versions without these keys count nothing.
local base = KEYS[1]

-- Returns the prefixes of an entry's sorted sets; the group's is last.
local function levels_of(name, group)
  local namespace, team, user = string.match(name, '^([^/]*)/([^/]*)/([^/]*)/')
  return {
    base .. ':all',
    base .. ':namespace:' .. namespace,
    base .. ':owner:' .. namespace .. '/' .. team .. '/' .. user,
    base .. ':group:' .. group
  }
end

-- Adds bytes to an owner's sum and to the total.
local function charge(name, bytes)
  local owner = string.match(name, '^[^/]*/[^/]*/[^/]*')
  if tonumber(redis.call('ZINCRBY', base .. ':shares', bytes, owner)) <= 0 then
    redis.call('ZREM', base .. ':shares', owner)
  end
  if redis.call('INCRBY', base .. ':bytes', string.format('%d', bytes)) <= 0 then
    redis.call('DEL', base .. ':bytes')
  end
end
