import { randomUUID } from 'node:crypto';
import { DELETE_TRIES, type Hands } from './hands.ts';

export const envRound = async (hands: Hands, user: string): Promise<void> => {
  const { dice } = hands;
  const name = randomUUID().slice(0, 8);
  const [env, pool] = [`env-${name}`, `member-${name}`];
  const [made] = await Promise.all([
    hands.insist(user, { what: 'create-env', env }),
    hands.send(user, { what: 'get-env', env }),
    hands.send(user, { what: 'get-env', env }),
  ]);
  if (made?.status !== 201) return await hands.idle(1_000);
  await hands.send(user, { what: 'get-env', env });
  await hands.insist(user, { what: 'add-member', env, pool, least: 1 });
  await Promise.all([
    hands.send(user, { what: 'label-env', env, label: '1' }),
    hands.send(user, { what: 'size-group', env, pool, least: dice.below(4) }),
  ]);
  for (let turn = dice.below(4); turn > 0 && !hands.gate.isClosed; turn -= 1) {
    const id = await hands.claim(user, { what: 'claim', pool, waitSeconds: 3 });
    await hands.send(user, { what: 'label-env', env, label: `turn-${turn}` });
    await hands.send(user, { what: 'get-env', env });
    if (id !== undefined) await hands.end(user, id);
  }
  await hands.insist(user, { what: 'delete-env', env }, DELETE_TRIES);
  await hands.idle(1_000 + dice.below(4_000));
};
