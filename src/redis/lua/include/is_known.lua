-- `is_known(key)` returns whether this run of the server is known to have a usage whole.

--- @include "run"

local function is_known(key) return redis.call('HGET', key, ':run') == run end
