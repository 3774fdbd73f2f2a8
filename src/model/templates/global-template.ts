import { Refusal } from '../refusals.ts';
import type { TemplateRecord } from './template.ts';

/** Says of which fleet a template is, if any. */
interface Origin {
  readonly globalId?: string;
  readonly managedBy?: string;
}

/** Whether it is this manager's, and goes to all clusters. */
export const isGlobalHere = <T extends Origin>(
  record: T,
): record is T & { readonly globalId: string } =>
  record.globalId !== undefined && record.managedBy === undefined;

/** Whether it is a copy of a manager's, which is changed there alone. */
export const isCopy = ({ managedBy = '' }: Origin): boolean => managedBy !== '';

/** Whether `syncSource` is shown as `global`: it is of a file, or the same on all clusters. */
export const hasGlobalSource = (record: TemplateRecord): boolean =>
  record.sourceHash !== undefined || isGlobalHere(record) || isCopy(record);

/** The template as the cluster's own from now on. */
export const ownTemplate = <T extends Origin>({
  globalId: _globalId,
  managedBy: _managedBy,
  ...own
}: T): Omit<T, 'globalId' | 'managedBy'> => own;

/** Counts characters of it as JSON, with the versions that are kept. */
export const charactersOf = ({
  document,
  earlier = [],
}: Pick<TemplateRecord, 'document' | 'earlier'>): number =>
  JSON.stringify({ document, earlier }).length;

/** Refusal at a worker, whose copy of a template is the manager's to change. */
export const templateOfManager = (): Refusal =>
  new Refusal(
    'CONFLICT',
    "this sandbox template is the fleet's: change or delete it at the manager, from which this " +
      'cluster has it',
    { detail: { hint: 'make a template of another name here, or ask an admin of the manager' } },
  );
