import { idOfPodName, type InstanceId } from '../../model/identifiers.ts';
import { FORMAT, type ResourceObject } from '../api/resource.ts';
import type { Seals } from '../api/seals.ts';

/** A `Sandbox` that a later version of this installation wrote: that one's alone to understand. */
export interface LaterSandbox {
  readonly key: string;
  readonly id: InstanceId | undefined;
  readonly uid: string;
  readonly laterFormat: number;
}

/**
 * Undefined where this version may read it, and where no daemon of this installation wrote it: then
 * it is no record at all.
 */
export const laterSandboxOf = (
  object: unknown,
  seals: Pick<Seals, 'judge'>,
): LaterSandbox | undefined => {
  const { spec, metadata } = object as ResourceObject & {
    readonly spec?: { readonly format?: unknown; readonly seal?: string };
  };
  if (
    typeof spec?.format !== 'number' ||
    spec.format <= FORMAT ||
    !['bound', 'unbound'].includes(seals.judge(object as ResourceObject, spec))
  )
    return undefined;
  return {
    key: `${metadata.namespace ?? ''}/${metadata.name}`,
    id: idOfPodName(metadata.name),
    uid: metadata.uid,
    laterFormat: spec.format,
  };
};
