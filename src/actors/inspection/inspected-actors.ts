import type {
  ActorKind,
  InspectedActor,
  PendingIntent,
  RebuildOutcome,
  ShownFields,
} from '../../model/inspection.ts';
import type { TransitionHistory } from '../runtime/transition-history.ts';

/** The actors of one kind, for whoever looks inside. */
export interface InspectedActors {
  readonly transitions: Pick<
    TransitionHistory<never>,
    'page' | 'counts' | 'current' | 'of' | 'follow' | 'size'
  >;
  /**
   * The key of what a person calls it; a name without a namespace is one of `namespace`. Undefined
   * for what is no name of one.
   */
  keyOf(text: string, namespace: string): string | undefined;
  /** Names the actors of one pool: by the group that they are all of, or by their keys. */
  ofPool(poolUid: string): { readonly group: string } | { readonly keys: readonly string[] };
  inspect(key: string): InspectedActor | undefined;
  /**
   * Shows what the actor's record says, read uncached; undefined where there is none. Rejects where
   * that can't be told now.
   */
  durable(key: string): Promise<ShownFields | undefined>;
  pendingOf(key: string): readonly PendingIntent[];
  /** Makes it anew from its facts. Rejects where they can't be read. */
  rebuild(key: string): Promise<RebuildOutcome>;
}

export type InspectedKinds = Readonly<Record<ActorKind, InspectedActors>>;
