import type { TemplateRecord } from '../../model/templates/template.ts';
import type { ToldCopies, ToldSource } from './told-records.ts';

/** Most templates of a manager that are replicated to all its clusters. */
export const MOST_GLOBAL_TEMPLATES = 100;
/** Most characters of all these templates as JSON, including kept versions. */
export const MOST_GLOBAL_CHARACTERS = 16 << 20;

/**
 * A manager's template that is the same on all its clusters, with its kept earlier versions.
 * `globalId` is unique: a later template of the same name has another id.
 */
export type GlobalTemplate = Omit<TemplateRecord, 'revision' | 'sourceHash' | 'managedBy'> & {
  readonly globalId: string;
};

/** Publishes a manager's global templates to its links, by `globalId`. */
export type GlobalTemplateSource = ToldSource<GlobalTemplate>;

/** A template as a worker receives it, from a manager of perhaps another version. */
export type ToldTemplate = Omit<GlobalTemplate, 'document'> & { readonly document: unknown };

/** A manager's message about its global templates. */
export interface GlobalTemplateChange {
  readonly templates: readonly ToldTemplate[];
  readonly gone: readonly string[];
  /**
   * The message belongs to the list with which a link begins. The list is no older than the link.
   * So it counts even over a later known version, as after a restore of the manager.
   */
  readonly whole?: 'more' | 'end';
}

/** A worker's state of a global template. */
export interface CopyReport {
  /**
   * `Conflict`: a template of that name exists that is not the manager's. `Refused`: the cluster
   * can't run it. `Pending`: not stored or not removed yet. `Absent`: unknown to the cluster.
   */
  readonly state: 'Synced' | 'Pending' | 'Conflict' | 'Refused' | 'Absent';
  /** Version on the cluster. */
  readonly version?: string;
  readonly message?: string;
  /** The first 50 pools that use the template. */
  readonly pools: readonly { readonly name: string; readonly namespace: string }[];
}

/** A worker's copies of global templates, among the cluster's own templates. */
export interface GlobalTemplateCopies extends ToldCopies<GlobalTemplateChange> {
  report(manager: string, globalId: string): Promise<CopyReport>;
}
