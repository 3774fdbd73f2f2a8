-- Defines `run`, the id of this run of the server. Another run may have lost the latest writes or
-- everything, or be an older copy. For operations that must detect incomplete data.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
