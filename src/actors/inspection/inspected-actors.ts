import type {
  ActorKind,
  InspectedActor,
  PendingIntent,
  RebuildOutcome,
  ShownFields,
} from '../../model/inspection.ts';
import type { TransitionHistory } from '../runtime/transition-history.ts';

/** Inspection of one kind of actors. */
export interface InspectedActors {
  readonly transitions: Pick<
    TransitionHistory<never>,
    'page' | 'counts' | 'current' | 'of' | 'follow' | 'size'
  >;
  /**
   * Parses a user's name of an actor to its key; `namespace` is the default. Undefined if it is not
   * a name.
   */
  keyOf(text: string, namespace: string): string | undefined;
  /** Actors of one pool, by their common group or by their keys. */
  ofPool(poolUid: string): { readonly group: string } | { readonly keys: readonly string[] };
  inspect(key: string): InspectedActor | undefined;
  /** Reads the actor's record uncached; undefined if there is none. Rejects if it can't be read. */
  durable(key: string): Promise<ShownFields | undefined>;
  pendingOf(key: string): readonly PendingIntent[];
  /** Rebuilds the actor from its facts. Rejects if they can't be read. */
  rebuild(key: string): Promise<RebuildOutcome>;
}

export type InspectedKinds = Readonly<Record<ActorKind, InspectedActors>>;
