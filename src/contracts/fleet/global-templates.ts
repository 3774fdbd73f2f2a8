import type { TemplateRecord } from '../../model/templates/template.ts';
import type { ToldCopies, ToldSource } from './told-records.ts';

/** The most templates of a manager that go to all its clusters. */
export const MOST_GLOBAL_TEMPLATES = 100;
/** Characters of them together, as JSON, with the versions that are kept. */
export const MOST_GLOBAL_CHARACTERS = 16 << 20;

/**
 * A template of a manager that is the same on all its clusters, with the versions before it that
 * are kept. `globalId` is its own: another template of the name, made later, has another one.
 */
export type GlobalTemplate = Omit<TemplateRecord, 'revision' | 'sourceHash' | 'managedBy'> & {
  readonly globalId: string;
};

/** Tells the links of a manager of its global templates, by their `globalId`. */
export type GlobalTemplateSource = ToldSource<GlobalTemplate>;

/** A template as a worker hears of it: of a manager that may be of another version. */
export type ToldTemplate = Omit<GlobalTemplate, 'document'> & { readonly document: unknown };

/** Says what a manager has to tell of its global templates. */
export interface GlobalTemplateChange {
  readonly templates: readonly ToldTemplate[];
  readonly gone: readonly string[];
  /**
   * It is of the list that a link begins with, which is no older than the link: then it counts also
   * where a later version is known, as when the manager was restored.
   */
  readonly whole?: 'more' | 'end';
}

/** Says how a worker stands to a global template. */
export interface CopyReport {
  /**
   * `Conflict`: a template of that name which is not the manager's is in its way; `Refused`: the
   * cluster can't run it; `Pending`: it is not kept yet, or not gone yet; `Absent`: nothing is
   * known of it.
   */
  readonly state: 'Synced' | 'Pending' | 'Conflict' | 'Refused' | 'Absent';
  /** The one that the cluster has. */
  readonly version?: string;
  readonly message?: string;
  /** Pools that are made from it, the first 50. */
  readonly pools: readonly { readonly name: string; readonly namespace: string }[];
}

/** Keeps copies of global templates at a worker, among the cluster's own templates. */
export interface GlobalTemplateCopies extends ToldCopies<GlobalTemplateChange> {
  report(manager: string, globalId: string): Promise<CopyReport>;
}
