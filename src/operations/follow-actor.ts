import type { InspectedKinds } from '../actors/inspection/inspected-actors.ts';
import type { Transition } from '../model/inspection.ts';
import { actorNotFound, tooManyStreams } from '../model/refusals.ts';
import { tenantKey } from '../model/tenant.ts';
import type { DebugOperations } from './debug-operations.ts';
import { Seats } from './seats.ts';

const MOST_STREAMS_OF_TENANT = 16;
/** Of one stream, that wait to be sent; the oldest go. */
const MOST_WAITING = 1_000;

/** One actor's transitions as they come (operation `GET /debug/actors/{kind}/{key}/inspect`). At most 16 at a time of one tenant's admins. */
export const followActor = ({ kinds }: { readonly kinds: InspectedKinds }): DebugOperations['followActor'] => {
  const seats = new Seats(MOST_STREAMS_OF_TENANT);
  return (caller, { kind, text }) => {
    const { trails } = kinds[kind];
    const key = kinds[kind].keyOf(text, caller.namespace);
    if (key === undefined || !trails.standing(key)) throw actorNotFound();
    const tenant = tenantKey(caller);
    if (!seats.take(tenant)) throw tooManyStreams('you have', MOST_STREAMS_OF_TENANT);
    let open = true;
    return {
      transitions: (signal) => transitionsOf((report) => trails.follow(key, report), signal),
      close: () => {
        if (!open) return;
        open = false;
        seats.leave(tenant);
      },
    };
  };
};

type Follow = (report: (transition: Transition | undefined) => void) => () => void;

async function* transitionsOf(follow: Follow, signal: AbortSignal): AsyncGenerator<{ readonly transition: Transition; readonly missed: boolean }, void, undefined> {
  const waiting: Transition[] = [];
  let missed = false;
  let over = signal.aborted;
  let wake = (): void => undefined;
  const end = (): void => {
    over = true;
    wake();
  };
  const unfollow = follow((transition) => {
    if (!transition) return end();
    if (waiting.push(transition) > MOST_WAITING) {
      waiting.shift();
      missed = true;
    }
    wake();
  });
  signal.addEventListener('abort', end, { once: true });
  try {
    while (!signal.aborted) {
      const transition = waiting.shift();
      if (transition) {
        yield { transition, missed };
        missed = false;
      } else if (over) return;
      else await new Promise<void>((resolve) => { wake = resolve; });
    }
  } finally {
    unfollow();
    signal.removeEventListener('abort', end);
  }
}
