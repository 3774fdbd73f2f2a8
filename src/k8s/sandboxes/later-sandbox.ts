import { idOfPodName, type InstanceId } from '../../model/identifiers.ts';
import { FORMAT, type ResourceObject } from '../api/resource.ts';
import type { Seals } from '../api/seals.ts';

export interface LaterSandbox {
  readonly key: string;
  readonly id: InstanceId | undefined;
  readonly uid: string;
  readonly laterFormat: number;
}

/** Undefined if this version can read the object, or if no daemon of this installation wrote it. */
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
