/**
 * One named atomic operation. It is given by when it must have begun, by Redis' clock (ARGV[1],
 * ms): later it does nothing and answers `late` and the time, for its caller has gone. Other
 * arguments begin at ARGV[2]. `now` is the time.
 */
export interface Script {
  readonly name: string;
  readonly lua: string;
}

export const defineScript = (name: string, body: string): Script => ({
  name: `sandpool_${name}`,
  lua: `${PRELUDE}${body}`,
});

/**
 * Which run of the server this is: another one may have lost what was written last, or all of it,
 * and may be an older copy. For scripts that must not take what they find for the whole.
 */
export const RUN = `local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')\n`;

const PRELUDE = `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
if now > tonumber(ARGV[1]) then return {'late', string.format('%d', now)} end
`;
