-- Every operation begins with this. ARGV[1] is the deadline to begin, in ms of Redis' clock. After
-- the deadline, the operation changes nothing and returns `late` and the time, since its caller no
-- longer waits. Defines `clock` (seconds, microseconds) and `now` (ms).
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now > tonumber(ARGV[1]) then return {'late', string.format('%d', now)} end
