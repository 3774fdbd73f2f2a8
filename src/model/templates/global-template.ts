import { Refusal } from '../refusals.ts';
import type { TemplateRecord } from './template.ts';

/** Fleet of a template, if any. */
interface Origin {
  readonly globalId?: string;
  readonly managedBy?: string;
}

/** Whether it is this manager's own global template, replicated to all clusters. */
export const isGlobalHere = <T extends Origin>(
  record: T,
): record is T & { readonly globalId: string } =>
  record.globalId !== undefined && record.managedBy === undefined;

/** Whether it is a copy of a manager's template, which only the manager may change. */
export const isCopy = ({ managedBy = '' }: Origin): boolean => managedBy !== '';

/** Whether `syncSource` is shown as `global`: the template comes from a file, or is replicated. */
export const hasGlobalSource = (record: TemplateRecord): boolean =>
  record.sourceHash !== undefined || isGlobalHere(record) || isCopy(record);

/** The template as the cluster's own from now on. */
export const ownTemplate = <T extends Origin>({
  globalId: _globalId,
  managedBy: _managedBy,
  ...own
}: T): Omit<T, 'globalId' | 'managedBy'> => own;

/** Number of its characters as JSON, including kept versions. */
export const charactersOf = ({
  document,
  earlier = [],
}: Pick<TemplateRecord, 'document' | 'earlier'>): number =>
  JSON.stringify({ document, earlier }).length;

/** Refusal at a worker: only the manager may change its template. */
export const templateOfManager = (): Refusal =>
  new Refusal(
    'CONFLICT',
    "this sandbox template is the fleet's: change or delete it at the manager, from which this " +
      'cluster has it',
    { detail: { hint: 'make a template of another name here, or ask an admin of the manager' } },
  );
