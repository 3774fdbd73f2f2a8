import { defineScript, RUN } from '../script.ts';

const IS_KNOWN = `${RUN}
local function is_known(key) return redis.call('HGET', key, ':run') == run end
`;

/**
 * Begins to make a tenant's usage anew, or joins who has begun. KEYS: rebuild, then the usage of
 * each resource. ARGV: deadline, a fresh token, ms to wait. Answers `known` where there is nothing
 * to do; else `wait`, the ms until the records may be read, and the token to end it with.
 */
export const BEGIN_REBUILD = defineScript(
  'begin_rebuild',
  `${IS_KNOWN}
local lacks = false
for i = 2, #KEYS do lacks = lacks or not is_known(KEYS[i]) end
if not lacks then return {'known'} end
local began, token, of = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+)|([^|]*)|(.*)$')
if of ~= run then
  began, token = now, ARGV[2]
  redis.call('SET', KEYS[1], string.format('%d', now) .. '|' .. token .. '|' .. run, 'PX', 20000)
end
return {'wait', math.max(0, began + ARGV[3] - now), token}
`,
);

/**
 * Puts what the records say in the place of a tenant's usage, where that is not known, unless what
 * was begun was lost meanwhile. KEYS: rebuild, then usage and unsettled of each resource in turn.
 * ARGV: deadline, token, then for each resource how many names there are, and of each name, amount
 * and revision. Answers `known` or `lost`.
 */
export const END_REBUILD = defineScript(
  'end_rebuild',
  `${IS_KNOWN}
local token, of = string.match(redis.call('GET', KEYS[1]) or '', '^%d+|([^|]*)|(.*)$')
local begun, lacks, at = of == run and token == ARGV[2], false, 3
for i = 2, #KEYS, 2 do
  local usage, count = KEYS[i], tonumber(ARGV[at])
  if not is_known(usage) then
    lacks = true
    if begun then
      redis.call('DEL', usage, KEYS[i + 1])
      local total = 0
      for part = at + 1, at + count * 3, 3 do
        local amount = ARGV[part + 1]
        redis.call('HSET', usage, ARGV[part], amount .. '|0|' .. amount .. '@' .. ARGV[part + 2])
        total = total + amount
      end
      redis.call('HSET', usage, ':run', run, ':since', now, ':total', total, ':version', now)
    end
  end
  at = at + 1 + count * 3
end
if begun then redis.call('DEL', KEYS[1]) end
return { (begun or not lacks) and 'known' or 'lost' }
`,
);
