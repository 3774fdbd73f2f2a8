import { defineScript, RUN } from '../script.ts';

/**
 * What a tenant uses. KEYS: usage of each resource. ARGV: deadline. Answers `known` and a number
 * for each; `unknown` where any of them is not.
 */
export const USED = defineScript(
  'used',
  `${RUN}
local answer = {'known'}
for i, key in ipairs(KEYS) do
  local usage = redis.call('HMGET', key, ':run', ':total')
  if usage[1] ~= run then return {'unknown'} end
  answer[i + 1] = usage[2]
end
return answer
`,
);
