-- Gives `run`, which names this run of the server. Another run may have lost what was written last,
-- or everything, and may be an older copy. For operations that must not take what they find for
-- the whole.
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
