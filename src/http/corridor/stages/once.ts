import type { Caller } from '../../../model/tenant.ts';
import type { IdempotencyDeps } from '../idempotency.ts';
import { thenLinger } from '../linger.ts';
import { answerMarked } from '../marked-answer.ts';
import { FREE } from '../pass.ts';
import type { Answer, AnyRequest } from '../route.ts';
import type { Exchange, Stage } from './exchange.ts';

/** Uses a grant for one effect. Under a key, replays the first answer on any replica. */
export const once =
  (deps: IdempotencyDeps): Stage =>
  async (exchange, next) => {
    const { row, context, pass, caller, key, elsewhere } = exchange;
    if (key !== undefined && caller && elsewhere?.isKept !== false)
      return await underKey(deps, { exchange, next, key, caller });
    const use = async (): Promise<void> => {
      await pass.use(async () => {
        await next();
        return answerOf(exchange);
      });
    };
    const work = pass === FREE ? next : use;
    await (row.media?.takes ? thenLinger(context, work) : work());
  };

interface Keyed {
  readonly exchange: Exchange;
  readonly next: () => Promise<void>;
  readonly key: string;
  readonly caller: Caller;
}

const underKey = async (
  deps: IdempotencyDeps,
  { exchange, next, key, caller }: Keyed,
): Promise<void> => {
  const { row, context, bytes, pass, overLink } = exchange;
  const perform = async (request: AnyRequest): Promise<Answer> => {
    exchange.request = request;
    await next();
    return answerOf(exchange);
  };
  const kept = await answerMarked(row, deps, {
    ...{ context, caller, key, bytes, pass, perform, request: exchange.request },
    isElsewhere: exchange.elsewhere !== undefined,
    byManager: key === overLink.key ? overLink.byManager : undefined,
    mayBeDone: overLink.mayBeDone,
  });
  context.state.answered = kept.text;
  exchange.kept = kept;
};

const answerOf = ({ answer }: Exchange): Answer => {
  if (!answer) throw new Error('the row gave no answer');
  return answer;
};
