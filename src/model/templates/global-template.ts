import { Refusal } from '../refusals.ts';
import type { TemplateRecord } from './template.ts';

interface Origin {
  readonly globalId?: string;
  readonly managedBy?: string;
}

export const isGlobalHere = <T extends Origin>(
  record: T,
): record is T & { readonly globalId: string } =>
  record.globalId !== undefined && record.managedBy === undefined;

export const isCopy = ({ managedBy = '' }: Origin): boolean => managedBy !== '';

/** The template comes from a file, or is replicated. */
export const hasGlobalSource = (record: TemplateRecord): boolean =>
  record.sourceHash !== undefined || isGlobalHere(record) || isCopy(record);

export const ownTemplate = <T extends Origin>({
  globalId: _globalId,
  managedBy: _managedBy,
  ...own
}: T): Omit<T, 'globalId' | 'managedBy'> => own;

/** As JSON, including kept versions. */
export const charactersOf = ({
  document,
  earlier = [],
}: Pick<TemplateRecord, 'document' | 'earlier'>): number =>
  JSON.stringify({ document, earlier }).length;

/** Only the manager may change its template. */
export const templateOfManager = (): Refusal =>
  new Refusal(
    'CONFLICT',
    'this sandbox template belongs to the fleet: change or delete it at the manager, which ' +
      'sent it to this cluster',
    {
      detail: { hint: 'create a template with another name here, or ask an admin of the manager' },
    },
  );
