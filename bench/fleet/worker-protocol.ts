/** Clusters that link to a manager, and are nothing beside their link and what they answer. */
export type WorkersOrder =
  | {
      readonly kind: 'join';
      readonly manager: string;
      readonly workers: readonly { readonly clusterId: string; readonly token: string }[];
      /** Sandboxes that each of them lists. */
      readonly sandboxes: number;
    }
  /** Each cuts its link. */
  | { readonly kind: 'leave' };

export type WorkersAnswer = 'done';
