-- Every operation begins with this. ARGV[1] is the time, in ms of Redis' clock, by which it must
-- have begun: after that it changes nothing and returns `late` and the time, as its caller no
-- longer waits. Gives `clock` (seconds, microseconds) and `now` (ms).
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now > tonumber(ARGV[1]) then return {'late', string.format('%d', now)} end
