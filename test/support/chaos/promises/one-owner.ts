import { isAcknowledged, type Case } from '../case.ts';

export const oneOwner = ({ instances, calls }: Case): readonly string[] => {
  const found: string[] = [];
  for (const { id, claims } of instances.values()) {
    if (claims.length > 1)
      found.push(
        `${id} was claimed ${claims.length} times: ${claims.map(({ owner, revision, claimedAt }) => `${owner} at ${claimedAt}, revision ${revision}`).join('; ')}`,
      );
  }
  const told = new Map<string, string>();
  for (const [n, call] of calls.entries()) {
    if (call.asked.what !== 'claim' || !isAcknowledged(call) || call.answer?.id === undefined)
      continue;
    const { id } = call.answer;
    // Repetitions under a key or an approval are one claim.
    const { key, name } = call.asked;
    const by = `${call.user} ${key === undefined ? (name ?? `call ${n}`) : `key ${key}`}`;
    const before = told.get(id);
    if (before !== undefined && before !== by)
      found.push(`${id} was given to ${before} and to ${by}`);
    told.set(id, by);
    const owner = instances.get(id)?.claims[0]?.owner;
    if (owner !== undefined && owner !== call.user)
      found.push(`${id} was given to ${call.user}, and its record names ${owner}`);
  }
  return found;
};
