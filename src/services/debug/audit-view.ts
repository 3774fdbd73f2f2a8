export interface AuditRequest {
  readonly limit: number;
  readonly cursor?: string;
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly keyId?: string;
  readonly operation?: string;
  readonly outcome?: 'done' | 'refused' | 'failed';
}

export interface AuditRecord {
  readonly seq: number;
  readonly time: string;
  readonly replica: string;
  readonly kind: string;
  readonly requestId?: string;
  readonly via?: string;
  readonly namespace?: string;
  readonly team?: string;
  readonly user?: string;
  readonly role?: string;
  readonly keyId?: string;
  readonly operation?: string;
  readonly params?: Record<string, string>;
  readonly target?: Record<string, string>;
  readonly status?: number;
  readonly errorCode?: string;
  readonly replayed?: boolean;
  readonly count?: number;
  readonly why?: string;
  readonly since?: string;
  readonly after?: string;
  readonly missing?: number;
  readonly boot?: string;
  readonly version?: string;
  readonly pid?: number;
  readonly prev: string;
  readonly hash: string;
}

export type ListedAuditRecord = AuditRecord & { readonly cursor: string };

export interface AuditList {
  readonly items: readonly ListedAuditRecord[];
  readonly nextCursor?: string;
}
