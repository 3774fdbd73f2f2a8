export type BareOrder =
  | {
      readonly kind: 'open';
      readonly kubeconfig: string;
      readonly redisPort: number;
      readonly namespace: string;
      readonly count: number;
    }
  /** Makes its records idle again. */
  | { readonly kind: 'give back' };

export type BareAnswer = { readonly port: number } | { readonly failed: string };
