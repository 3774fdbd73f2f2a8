import { randomUUID } from 'node:crypto';
import type { HttpAnswer } from '../harness/http-client.ts';
import { pause, type Hands } from './hands.ts';
import type { Asked, ClaimAsked } from './history.ts';

export const GATED_POOL = 'omega';
/** Shorter than a rest's wait for clients. */
const MOST_MS = 40_000;
const COME_AGAIN = new Set(['APPROVAL_REQUIRED', 'IDEMPOTENCY_IN_FLIGHT', 'RATE_LIMITED']);

/** Sometimes two clients repeat the request, or one after the answer. */
export const gatedRound = async (hands: Hands, user: string): Promise<void> => {
  const { dice } = hands;
  const asked: ClaimAsked = {
    what: 'claim',
    pool: GATED_POOL,
    name: randomUUID(),
    ...(dice.chance(0.3) ? { approvalSeconds: 1 + dice.below(5) } : {}),
  };
  const answers = await Promise.all([
    untilDecided(hands, user, asked),
    dice.chance(0.3) ? untilDecided(hands, user, asked) : undefined,
  ]);
  if (dice.chance(0.3)) answers.push(await hands.send(user, asked));
  const ids = new Set(
    answers.flatMap((answer) =>
      answer?.status === 201 ? (answer.json.sandbox?.['sandboxId'] ?? []) : [],
    ),
  );
  for (const id of ids) {
    hands.held.add(id);
    hands.claims += 1;
    await hands.send(user, { what: 'get', id });
    await gatedEnd(hands, user, id);
  }
  await hands.idle(100 + dice.below(400));
};

export const gatedEnd = async (hands: Hands, user: string, id: string): Promise<void> => {
  await untilDecided(hands, user, { what: 'delete', id });
  hands.held.delete(id);
};

/** Undefined without a timely answer, or if the client did not return. */
const untilDecided = async (
  hands: Hands,
  user: string,
  asked: Asked,
): Promise<HttpAnswer | undefined> => {
  const deadline = performance.now() + MOST_MS;
  while (performance.now() < deadline) {
    const answer = await hands.send(user, asked);
    if (answer && answer.status !== 503 && !COME_AGAIN.has(answer.json.errorCode ?? ''))
      return answer;
    if (answer && hands.dice.chance(0.01)) return undefined;
    await pause(100 + hands.dice.below(300));
  }
  return undefined;
};
