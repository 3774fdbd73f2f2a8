import type { TemplateRecord } from '../../model/templates/template.ts';
import type { ToldCopies, ToldSource } from './told-records.ts';

export const MOST_GLOBAL_TEMPLATES = 100;
export const MOST_GLOBAL_CHARACTERS = 16 << 20;

/**
 * Includes its kept earlier versions. `globalId` is unique: a later template of the same name has
 * another id.
 */
export type GlobalTemplate = Omit<TemplateRecord, 'revision' | 'sourceHash' | 'managedBy'> & {
  readonly globalId: string;
};

/** By `globalId`. */
export type GlobalTemplateSource = ToldSource<GlobalTemplate>;

export type ToldTemplate = Omit<GlobalTemplate, 'document'> & { readonly document: unknown };

export interface GlobalTemplateChange {
  readonly templates: readonly ToldTemplate[];
  readonly gone: readonly string[];
  /**
   * Belongs to the list with which a link begins: it counts even over a later known version, as
   * after a restore of the manager.
   */
  readonly whole?: 'more' | 'end';
}

export interface CopyReport {
  /**
   * `Conflict`: a template of that name exists, but is not the manager's. `Refused`: the cluster
   * can't run it. `Pending`: not stored or not removed yet. `Absent`: unknown to the cluster.
   */
  readonly state: 'Synced' | 'Pending' | 'Conflict' | 'Refused' | 'Absent';
  readonly version?: string;
  readonly message?: string;
  readonly pools: readonly { readonly name: string; readonly namespace: string }[];
}

export interface GlobalTemplateCopies extends ToldCopies<GlobalTemplateChange> {
  report(manager: string, globalId: string): Promise<CopyReport>;
}
