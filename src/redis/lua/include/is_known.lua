-- `is_known(key)` returns whether a usage is complete on this run of the server.

--- @include "run"

local function is_known(key) return redis.call('HGET', key, ':run') == run end
