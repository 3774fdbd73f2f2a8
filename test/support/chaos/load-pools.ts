import { randomUUID } from 'node:crypto';
import { DELETE_TRIES, type Hands } from './hands.ts';

/** Two such pools exceed the quota. */
const MOST_REPLICAS = 9;
const PASSING_POOL = 'epsilon';
const PASSING_REPLICAS = 2;

/** Resizes cross each other. Sometimes sandboxes run at the deletion. */
export const poolRound = async (hands: Hands, user: string): Promise<void> => {
  const { dice } = hands;
  const pool = `passing-${randomUUID().slice(0, 8)}`;
  const made = await hands.insist(user, { what: 'create-pool', pool, replicas: 1 + dice.below(2) });
  await hands.send(user, { what: 'get-pool', pool });
  if (made?.status === 201 && dice.chance(0.5)) {
    const resize = (): Promise<unknown> =>
      hands.send(user, { what: 'resize-pool', pool, replicas: 1 + dice.below(MOST_REPLICAS) });
    await Promise.all([resize(), resize()]);
  }
  const id =
    made?.status === 201 && dice.chance(0.5)
      ? await hands.claim(user, { what: 'claim', pool, waitSeconds: 2 })
      : undefined;
  const force = id !== undefined && dice.chance(0.5);
  if (id !== undefined && !force) await hands.end(user, id);
  await hands.insist(
    user,
    { what: 'delete-pool', pool, ...(force ? { force } : {}) },
    DELETE_TRIES,
  );
  if (id !== undefined) hands.held.delete(id);
  await hands.idle(1_000 + dice.below(4_000));
};

/** Makes again what a deleted namespace took. */
export const passingTenantRound = async (hands: Hands, user: string): Promise<void> => {
  const id = await hands.claim(user, { what: 'claim', pool: PASSING_POOL, waitSeconds: 1 });
  if (id !== undefined) await hands.end(user, id);
  else if ((await hands.send(user, { what: 'get-pool', pool: PASSING_POOL }))?.status === 404) {
    await hands.send(user, { what: 'create-pool', pool: PASSING_POOL, replicas: PASSING_REPLICAS });
  }
  await hands.idle(200 + hands.dice.below(800));
};
