import type { Redis } from 'ioredis';

/** Moves this Redis's time: expiries come sooner, and noted moments lie further back. */
export const advanceRedis = async (
  nodes: readonly Redis[],
  milliseconds: number,
): Promise<void> => {
  for (const node of nodes) {
    for (const key of await node.keys('*')) {
      if (key.includes('{leases}')) continue;
      const left = await node.pttl(key);
      if (left >= 0) await node.pexpire(key, left - milliseconds);
      if (/:(times|requests|unsettled:\w+|working:[\w-]+)$/.test(key))
        await Promise.all(
          (await node.zrange(key, '0', '-1')).map((member) =>
            node.zincrby(key, -milliseconds, member),
          ),
        );
      if (key.endsWith(':marks'))
        for (const field of await node.hkeys(key))
          if (field !== ':run') await node.hincrby(key, field, -milliseconds);
      if (key.includes(':waiting-seen:'))
        for (const field of await node.hkeys(key))
          if (field !== ':front') await node.hincrby(key, field, -milliseconds);
      if (key.endsWith('{console}:sessions')) await agedSessions(node, key, milliseconds);
      if (key.endsWith('{fleet}:starts')) await agedStarts(node, key, milliseconds);
      if (key.includes(':request:') && (await node.hexists(key, 'until')) === 1)
        await node.hincrby(key, 'until', -milliseconds);
    }
  }
};

const agedStarts = async (node: Redis, key: string, milliseconds: number): Promise<void> => {
  for (const [cluster, text] of Object.entries(await node.hgetall(key))) {
    const entry = JSON.parse(text) as { wantedAt: number; linked: Record<string, number> };
    entry.wantedAt -= milliseconds;
    for (const name of Object.keys(entry.linked)) entry.linked[name]! -= milliseconds;
    await node.hset(key, cluster, JSON.stringify(entry));
  }
};

const agedSessions = async (node: Redis, key: string, milliseconds: number): Promise<void> => {
  for (const [id, text] of Object.entries(await node.hgetall(key))) {
    const entry = JSON.parse(text) as Record<'openedAt' | 'seenAt' | 'endsAt', number>;
    for (const moment of ['openedAt', 'seenAt', 'endsAt'] as const) entry[moment] -= milliseconds;
    await node.hset(key, id, JSON.stringify(entry));
  }
};
