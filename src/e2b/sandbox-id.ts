import { isInstanceId, type InstanceId } from '../model/identifiers.ts';

const DIGITS = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;

/** Returns the id as clients of the compatible API have it, which is part of a host name there. */
export const compatibleId = (id: InstanceId): string => id.replaceAll('-', '');

/** Returns the sandbox that such an id, or a UUID, names; undefined where it is neither. */
export const instanceIdOf = (text: string): InstanceId | undefined => {
  const id = text.replace(DIGITS, '$1-$2-$3-$4-$5');
  return isInstanceId(id) ? id : undefined;
};
