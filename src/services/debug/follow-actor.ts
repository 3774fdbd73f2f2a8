import { actorNotFound } from '../../model/inspection.ts';
import { randomUUID } from 'node:crypto';
import type { InspectedKinds } from '../../actors/inspection/inspected-actors.ts';
import type { Clock } from '../../contracts/clock.ts';
import type { Coordination } from '../../contracts/coordination.ts';
import { Refusal } from '../../model/refusals.ts';
import { tooManyStreams } from '../../model/limit-refusals.ts';
import { shardOf } from '../../model/shards.ts';
import { tenantKey } from '../../model/tenant.ts';
import type { ActorNews, DebugOperations } from './debug-operations.ts';
import { viewOf } from './replica-views.ts';
import { Permits } from '../../lib/permits.ts';
import type { KeyedActor } from './show-actor.ts';
import {
  positionIn,
  MOST_OF_PAGE,
  TransitionCursor,
  type TransitionPosition,
  type TransitionPage,
} from './transition-cursor.ts';
import type { TransitionQuestion } from './transition-subscriptions.ts';

const MOST_STREAMS_OF_TENANT = 16;
/** In ms, between polls of another replica, and between checks for a new leader. */
export const LOOK_MS = 250;

export interface FollowActorDeps {
  readonly kinds: InspectedKinds;
  readonly coordination: Pick<Coordination, 'askReplica' | 'replicas' | 'lease' | 'holders'>;
  readonly clock: Clock;
  readonly replica: string;
}

/**
 * Polls another leader every 250 ms (operation `GET /debug/actors/{kind}/{key}/inspect`). At most
 * 16 streams for one tenant's admins.
 */
export const followActor = (deps: FollowActorDeps): DebugOperations['followActor'] => {
  const followers = new Permits({ tenant: MOST_STREAMS_OF_TENANT });
  return async (caller, { kind, text }) => {
    const key = deps.kinds[kind].keyOf(text, caller.namespace);
    const shardKey = key === undefined ? undefined : deps.kinds[kind].inspect(key)?.shardKey;
    if (key === undefined || shardKey === undefined) throw actorNotFound();
    const release = followers.take({ tenant: tenantKey(caller) }, (_, most) =>
      tooManyStreams('you have', most),
    );
    const following = new Following(deps, { kind, key, shard: shardOf(shardKey) });
    const close = (): void => {
      following.close();
      release();
    };
    try {
      await following.begin();
    } catch (error) {
      close();
      throw error;
    }
    return { news: (signal) => following.news(signal), close };
  };
};

interface Look {
  readonly by: string;
  readonly note?: string;
  readonly page?: TransitionPage;
}

function* newsOf(page: TransitionPage | undefined): Generator<ActorNews, void, undefined> {
  if (page?.missed) yield { kind: 'missed' };
  for (const transition of page?.transitions ?? []) yield { kind: 'transition', transition };
  if (page?.ended) yield { kind: 'ended' };
}

class Following {
  readonly #deps: FollowActorDeps;
  readonly #actor: KeyedActor & { readonly shard: number };
  readonly #id = randomUUID();
  #mark: TransitionPosition | undefined;
  #first: Look | undefined;
  #here: TransitionCursor | undefined;
  #changed = false;
  #wake = (): void => undefined;

  constructor(deps: FollowActorDeps, actor: KeyedActor & { readonly shard: number }) {
    this.#deps = deps;
    this.#actor = actor;
  }

  /** The stream includes all transitions after this resolves. */
  async begin(): Promise<void> {
    const { kinds, clock, replica } = this.#deps;
    const { kind, key } = this.#actor;
    const now = positionIn({
      transitions: kinds[kind].transitions,
      key,
      by: replica,
      now: clock.now(),
    });
    this.#first = await this.#look();
    this.#mark = this.#first.page?.mark ?? now;
  }

  async *news(signal: AbortSignal): AsyncGenerator<ActorNews, void, undefined> {
    const aborted = (): void => {
      this.#note();
    };
    signal.addEventListener('abort', aborted, { once: true });
    let seenBy: string | undefined;
    try {
      for (let look = this.#first; !signal.aborted; look = undefined) {
        const { by, note, page } = look ?? (await this.#look());
        const told = `${by} ${note ?? ''}`;
        if (told !== seenBy) yield { kind: 'seen-by', replica: by, note };
        seenBy = told;
        yield* newsOf(page);
        if (page?.ended) return;
        this.#mark = page?.mark ?? this.#mark;
        if (page?.transitions.length !== MOST_OF_PAGE) await this.#pause(signal);
      }
    } finally {
      signal.removeEventListener('abort', aborted);
      this.close();
    }
  }

  close(): void {
    this.#here?.close();
    this.#here = undefined;
  }

  async #look(): Promise<Look> {
    this.#changed = false;
    const { coordination, replica } = this.#deps;
    const leader = coordination.lease(this.#actor.shard)
      ? replica
      : coordination.holders().get(this.#actor.shard);
    if (leader !== undefined && leader !== replica) return await this.#lookThere(leader);
    return {
      by: replica,
      page: this.#lookHere(),
      note: leader === undefined ? 'no replica leads it now' : undefined,
    };
  }

  #lookHere(): TransitionPage {
    const { kinds, clock, replica } = this.#deps;
    const { kind, key } = this.#actor;
    const { transitions } = kinds[kind];
    if (!this.#here && !transitions.current(key)) return this.#gone();
    this.#here ??= new TransitionCursor({
      transitions,
      key,
      by: replica,
      now: clock.now(),
      changed: () => {
        this.#note();
      },
    });
    return this.#here.page(this.#mark);
  }

  async #lookThere(leader: string): Promise<Look> {
    this.close();
    const { kind, key } = this.#actor;
    const question: TransitionQuestion = {
      about: 'transitions',
      kind,
      key,
      follower: this.#id,
      mark: this.#mark,
    };
    try {
      const page = await viewOf<TransitionPage | undefined>(this.#deps, leader, {
        question,
        here: () => undefined,
      });
      return page
        ? { by: leader, page }
        : { by: leader, note: 'its replica runs a version that does not report transitions' };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.code === 'NOT_FOUND' && !this.#deps.kinds[kind].transitions.current(key))
        return { by: leader, page: this.#gone() };
      return { by: leader, note: `its leader does not report transitions: ${error.message}` };
    }
  }

  #gone(): TransitionPage {
    return {
      transitions: [],
      missed: false,
      ended: true,
      mark: this.#mark ?? { by: this.#deps.replica, number: 0, at: 0, to: '' },
    };
  }

  #note(): void {
    this.#changed = true;
    this.#wake();
  }

  async #pause(signal: AbortSignal): Promise<void> {
    if (this.#changed || signal.aborted) return;
    const { clock } = this.#deps;
    await new Promise<void>((resolve) => {
      const cancel = clock.at(clock.now() + LOOK_MS, () => {
        resolve();
      });
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}
